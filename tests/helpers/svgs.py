"""Reading pictures: the elements of an SVG by their classes, and their words."""

from __future__ import annotations

import xml.etree.ElementTree as ET

__all__ = ["SVG", "elements", "elements_in", "words"]

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: str, cls: str) -> list[ET.Element]:
    """Return the elements of a class, in the order of the document."""
    return elements_in(ET.fromstring(svg), cls)


def elements_in(parent: ET.Element, cls: str) -> list[ET.Element]:
    """Return those in an element."""
    return [element for element in parent.iter() if cls in element.get("class", "").split()]


def words(element: ET.Element) -> str:
    """Return all text in an element."""
    return "".join(element.itertext())
