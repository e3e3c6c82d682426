// Compile the Python modules of wheels and zip files to bytecode, with Pyodide itself in Node.js.
//
//     node compile.mjs PYODIDE INPUT OUTPUT
//
// A page starts in half the time when Python need not compile what it imports. The bytecode is "unchecked": Python never
// compares it with the source, which is left out. Type stubs are left out, too.
import { pathToFileURL } from "node:url";

const [core, input, output] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${core}/pyodide.mjs`));
const pyodide = await loadPyodide({ indexURL: `${core}/` });
pyodide.mountNodeFS("/input", input);
pyodide.mountNodeFS("/output", output);
pyodide.runPython(`
import os
import warnings
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import source_hash

warnings.simplefilter("ignore")  # of the compiled packages


def compile_module(name, source):
    code = compile(source, name, "exec", dont_inherit=True)
    return bytes(_code_to_hash_pyc(code, source_hash(source), checked=False))


for archive in sorted(os.listdir("/input")):
    with zipfile.ZipFile(f"/input/{archive}") as files, zipfile.ZipFile(f"/output/{archive}", "w") as compiled:
        for entry in files.infolist():
            name, content = entry.filename, files.read(entry)
            if name.endswith((".pyi", "/RECORD")):
                continue
            if name.endswith(".py"):
                name, content = name + "c", compile_module(name, content)
            compiled.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
`);
