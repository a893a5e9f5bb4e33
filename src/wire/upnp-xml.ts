import { DecodeError } from "../base/errors.ts";

/** An element of what UPnP devices send. Attributes are passed over: nothing of ours is in them. */
export interface XmlElement {
  /** Without its prefix. */
  readonly name: string;
  /** The text directly in it, without space around. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

const FORMAT = "UPnP XML";
/** Descriptions nest some ten elements; deeper ones are made to overflow something. */
const MAX_DEPTH = 32;
/** A router's description has some two hundred. */
const MAX_ELEMENTS = 4096;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
/** A tag, whole: name, then whatever stands in quotes or is no bracket. */
const TAG =
  /<(\/?)(?:[A-Za-z_][\w.-]{0,63}:)?([A-Za-z_][\w.-]{0,63})((?:\s+[^\s"'<>=/]{1,128}\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y;

interface Growing {
  readonly name: string;
  text: string;
  readonly children: XmlElement[];
}

/**
 * Reads the XML of device descriptions and answers: elements and text; comments and instructions are passed over, document
 * types (and so entities of one's own) refused. Throws `DecodeError` where it is not well-formed.
 */
export function readXml(source: string): XmlElement {
  const open: Growing[] = [{ name: "", text: "", children: [] }];
  let elements = 0;
  // Some put a byte order mark, or space, before it all.
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
        throw new DecodeError(FORMAT, at, `unexpected end of ${name}`);
      open.pop();
      open.at(-1)!.children.push(finished(here));
    } else {
      if (++elements > MAX_ELEMENTS) throw new DecodeError(FORMAT, at, `more than ${MAX_ELEMENTS} elements`);
      if (open.length > MAX_DEPTH) throw new DecodeError(FORMAT, at, `deeper than ${MAX_DEPTH} elements`);
      const element: Growing = { name, text: "", children: [] };
      if (isEmpty === "") open.push(element);
      else here.children.push(element);
    }
    at += whole.length;
  }
  const [root] = open[0]!.children;
  if (open.length > 1) throw new DecodeError(FORMAT, at, `expected the end of ${open.at(-1)!.name}`);
  if (root === undefined || open[0]!.children.length > 1)
    throw new DecodeError(FORMAT, at, "expected one element around all");
  return root;
}

/** The text of the first child of a name; undefined where there is none. */
export function childText(element: XmlElement, name: string): string | undefined {
  return element.children.find((child) => child.name === name)?.text;
}

/** An element and all below it that have a name, in the order of the document. */
export function* elementsNamed(element: XmlElement, name: string): Iterable<XmlElement> {
  if (element.name === name) yield element;
  for (const child of element.children) yield* elementsNamed(child, name);
}

function finished({ name, text, children }: Growing): XmlElement {
  return { name, text: text.trim(), children };
}

/** Where a comment, an instruction or a run of characters that begins at `at` ends; undefined where none does. */
function skip(source: string, at: number): number | undefined {
  if (source.startsWith("<?", at)) return closed(source, "?>", at);
  if (source.startsWith("<!--", at)) return closed(source, "-->", at + 4);
  if (source.startsWith("<!", at)) throw new DecodeError(FORMAT, at, "expected neither type nor CDATA");
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
    if (character === undefined) throw new DecodeError(FORMAT, offset, "an entity that XML does not have");
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
