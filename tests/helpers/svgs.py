"""Read SVG pictures: elements by class, and their text."""

from __future__ import annotations

import xml.etree.ElementTree as ET

__all__ = ["SVG", "elements", "elements_in", "text_of"]

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: str, cls: str) -> list[ET.Element]:
    """Return the elements of a class, in the order of the document."""
    return elements_in(ET.fromstring(svg), cls)


def elements_in(parent: ET.Element, cls: str) -> list[ET.Element]:
    """Return the elements of a class inside an element."""
    return [element for element in parent.iter() if cls in element.get("class", "").split()]


def text_of(element: ET.Element) -> str:
    """Return all text inside an element."""
    return "".join(element.itertext())
