"""Save and load in memory for tests of checkpoints, and build PyTorch files piece by piece."""

import io
import zipfile

import minigrad as mg


def save_bytes(obj):
    file = io.BytesIO()
    mg.save(obj, file)
    return file.getvalue()


def load_bytes(data, **options):
    return mg.load(io.BytesIO(data), **options)


def is_identical(a, b):
    """Whether two nested structures are equal: the same types throughout, and tensors equal bit for bit."""
    if isinstance(a, mg.Tensor):
        return (a.dtype, a.shape, a.device) == (
            b.dtype,
            b.shape,
            b.device,
        ) and a.detach().numpy().tobytes() == b.detach().numpy().tobytes()
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(is_identical(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_identical, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


# --- PyTorch's files ---


def torch_save_bytes(torch, obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return file.getvalue()


def edit_zip(data, edits, compress=zipfile.ZIP_STORED):
    """Return a copy of the zip file `data`. `edits` maps the end of an entry's name to a function of its bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", compress) as new:
        for name in old.namelist():
            edit = edits.get(name.partition("/")[2], lambda x: x)
            new.writestr(name, edit(old.read(name)))
    return buffer.getvalue()


# --- hostile files ---


def torch_file(pickled, **records):
    """Return a file as torch.save writes it, with this pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("archive/data.pkl", pickled)
        for name, data in records.items():
            file.writestr(f"archive/data/{name.removeprefix('n')}", data)
    return buffer.getvalue()


FLOATS = b"\x00\x00\x80?" * 4
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"(\x8c\x07storagectorch\nFloatStorage\n\x8c\x010\x8c\x03cpuK\x04tQ"  # of four elements


def pickle_tensor(offset=b"K\x00", size=b"K\x04\x85", stride=b"K\x01\x85", rest=b"\x89}", storage=STORAGE):
    """Return the pickle of one tensor, built from these pieces of pickle."""
    return b"\x80\x02" + TENSOR + b"(" + storage + offset + size + stride + rest + b"tR."
