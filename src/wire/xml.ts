import { DecodeError } from "../base/errors.ts";

/** An XML element of a UPnP document or of a listing of S3. Attributes are ignored, because neither needs them. */
interface XmlElement {
  /** Name without namespace prefix. */
  readonly name: string;
  /** Trimmed text directly in the element. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

const FORMAT = "XML";
/** Real descriptions nest about ten elements. */
const MAX_DEPTH = 32;
/** The description of a router has about two hundred. */
const MAX_ELEMENTS = 4096;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
/** A complete tag: name and attributes. */
const TAG =
  /<(\/?)(?:[A-Za-z_][\w.-]{0,63}:)?([A-Za-z_][\w.-]{0,63})((?:\s+[^\s"'<>=/]{1,128}\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y;

/** An element that is not closed yet. */
interface OpenElement {
  readonly name: string;
  text: string;
  readonly children: XmlElement[];
}

/**
 * Parses the XML of device descriptions, SOAP responses and S3 listings: elements and text. Comments and processing instructions are ignored;
 * document types, and with them custom entities, are refused. Returns the root element. Throws `DecodeError`.
 */
export function readXml(source: string): XmlElement {
  const open: OpenElement[] = [{ name: "", text: "", children: [] }];
  let elements = 0;
  // Some devices send a byte order mark or white space first.
  let at = /^\uFEFF?\s*/.exec(source)![0].length;
  while (at < source.length) {
    const here = open.at(-1)!;
    if (source[at] !== "<") {
      const end = until(source, "<", at);
      const text = source.slice(at, end);
      if (open.length > 1) here.text += unescaped(text, at);
      else if (text.trim() !== "") throw new DecodeError(FORMAT, at, "expected an element");
      at = end;
      continue;
    }
    const skipped = skip(source, at);
    if (skipped !== undefined) {
      at = skipped;
      continue;
    }
    TAG.lastIndex = at;
    const [whole, isEnd, name, , isEmpty] = TAG.exec(source) ?? [];
    if (whole === undefined || name === undefined) throw new DecodeError(FORMAT, at, "expected a tag");
    if (isEnd !== "") {
      if (here.name !== name || open.length === 1)
        throw new DecodeError(FORMAT, at, `unexpected end tag ${name}`);
      open.pop();
      open.at(-1)!.children.push(finished(here));
    } else {
      if (++elements > MAX_ELEMENTS) throw new DecodeError(FORMAT, at, `more than ${MAX_ELEMENTS} elements`);
      if (open.length > MAX_DEPTH)
        throw new DecodeError(FORMAT, at, `nested deeper than ${MAX_DEPTH} elements`);
      const element: OpenElement = { name, text: "", children: [] };
      if (isEmpty === "") open.push(element);
      else here.children.push(element);
    }
    at += whole.length;
  }
  const [root] = open[0]!.children;
  if (open.length > 1) throw new DecodeError(FORMAT, at, `expected the end tag ${open.at(-1)!.name}`);
  if (root === undefined || open[0]!.children.length > 1)
    throw new DecodeError(FORMAT, at, "expected one root element");
  return root;
}

/** Returns the text of the first child with this name; undefined if there is none. */
export function childText(element: XmlElement, name: string): string | undefined {
  return element.children.find((child) => child.name === name)?.text;
}

/** Iterates over the elements with this name among an element and its descendants, in document order. */
export function* elementsNamed(element: XmlElement, name: string): Iterable<XmlElement> {
  if (element.name === name) yield element;
  for (const child of element.children) yield* elementsNamed(child, name);
}

function finished({ name, text, children }: OpenElement): XmlElement {
  return { name, text: text.trim(), children };
}

/** Returns the offset after a comment or instruction that begins at `at`; undefined if there is none. */
function skip(source: string, at: number): number | undefined {
  if (source.startsWith("<?", at)) return closed(source, "?>", at);
  if (source.startsWith("<!--", at)) return closed(source, "-->", at + 4);
  if (source.startsWith("<!", at))
    throw new DecodeError(FORMAT, at, "document types and CDATA are not supported");
  return undefined;
}

function closed(source: string, end: string, from: number): number {
  const at = source.indexOf(end, from);
  if (at < 0) throw new DecodeError(FORMAT, from, `expected ${end}`);
  return at + end.length;
}

function until(source: string, mark: string, from: number): number {
  const at = source.indexOf(mark, from);
  return at < 0 ? source.length : at;
}

function unescaped(text: string, offset: number): string {
  return text.replace(/&([^;&]{0,10});?/g, (whole, name: string) => {
    const character = whole.endsWith(";") ? characterOf(name) : undefined;
    if (character === undefined) throw new DecodeError(FORMAT, offset, "unknown entity");
    return character;
  });
}

function characterOf(name: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))$/.exec(name) ?? [];
  if (hex === undefined && decimal === undefined) return ENTITIES[name];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  const isCharacter = code >= 0x20 || code === 9 || code === 10 || code === 13;
  return isCharacter && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000)
    ? String.fromCodePoint(code)
    : undefined;
}
