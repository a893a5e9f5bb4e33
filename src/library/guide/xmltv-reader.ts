import sax from "sax";
import { DecodeError } from "../../base/errors.ts";
import type { UnixSeconds } from "../../base/time.ts";

/** A channel of a programme guide. */
export interface XmltvChannel {
  readonly id: string;
  /** All display names, in the order of the guide. */
  readonly names: readonly string[];
  /** A URL, or empty. */
  readonly icon: string;
}

/** A programme of a guide. Empty texts are unknown. */
export interface XmltvProgramme {
  readonly channel: string;
  readonly start: UnixSeconds;
  /** Undefined if the guide does not say it: the programme ends when the next one starts. */
  readonly stop: UnixSeconds | undefined;
  readonly title: string;
  readonly subtitle: string;
  readonly description: string;
  readonly categories: readonly string[];
  readonly icon: string;
  /** As the guide writes it, such as `S02E05`. */
  readonly episode: string;
}

/** Receives what {@link XmltvReader} finds. */
export interface XmltvHandler {
  channel(channel: XmltvChannel): void;
  programme(programme: XmltvProgramme): void;
}

/** A guide has three levels; `credits` and the like add two. */
const MAX_DEPTH = 32;
const MAX_ATTRIBUTES = 64;
const MAX_NAMES = 16;
const MAX_CATEGORIES = 8;
/** Longest texts in UTF-16 units; longer ones are cut. */
const MAX_ID = 200;
const MAX_NAME = 200;
const MAX_TITLE = 300;
const MAX_DESCRIPTION = 2_000;
const MAX_URL = 1_000;

/** The elements of a channel or programme whose text is kept, with the length at which it is cut. */
const TEXTS: Readonly<Record<string, number>> = {
  "display-name": MAX_NAME,
  title: MAX_TITLE,
  "sub-title": MAX_TITLE,
  desc: MAX_DESCRIPTION,
  category: MAX_NAME,
  "episode-num": MAX_NAME,
};

/**
 * Reads a programme guide in the XMLTV format (xmltv.dtd) as it arrives. Tolerates what is wrong in many guides (bare `&`, unknown
 * elements, missing times); texts and nesting are bounded.
 */
export class XmltvReader {
  readonly #handler: XmltvHandler;
  readonly #parser = sax.parser(false, { lowercase: true, trim: false, normalize: false });
  #depth = 0;
  #attributes = 0;
  #isGuide = false;
  #isClosed = false;
  #item: Item | undefined;
  #text = "";
  #textLimit = 0;

  constructor(handler: XmltvHandler) {
    this.#handler = handler;
    this.#parser.onopentagstart = () => {
      this.#attributes = 0;
    };
    this.#parser.onattribute = () => {
      if (++this.#attributes > MAX_ATTRIBUTES)
        throw new DecodeError("XMLTV", this.#parser.position, "an element has too many attributes");
    };
    this.#parser.onopentag = ({ name, attributes }) => this.#open(name, attributes as Record<string, string>);
    this.#parser.ontext = (text) => this.#addText(text);
    this.#parser.oncdata = (text) => this.#addText(text);
    this.#parser.onclosetag = (name) => this.#close(name);
    this.#parser.onerror = (error) => {
      // The lenient mode reports only an element or a name that is longer than its buffer.
      throw new DecodeError("XMLTV", this.#parser.position, error.message.split("\n")[0]!);
    };
  }

  /** Reads the next part of the text. Throws `DecodeError` if it is not a guide. */
  push(text: string): void {
    this.#parser.write(text);
  }

  /** Throws `DecodeError` if the guide is not complete. */
  end(): void {
    if (!this.#isClosed)
      throw new DecodeError(
        "XMLTV",
        this.#parser.position,
        this.#isGuide ? "the guide is truncated" : "not a guide",
      );
  }

  #open(name: string, attributes: Record<string, string>): void {
    if (++this.#depth > MAX_DEPTH)
      throw new DecodeError("XMLTV", this.#parser.position, "elements are nested too deeply");
    if (!this.#isGuide) {
      if (name !== "tv")
        throw new DecodeError(
          "XMLTV",
          this.#parser.position,
          `expected the element tv, got ${name.slice(0, 40)}`,
        );
      this.#isGuide = true;
      return;
    }
    if (name === "channel") this.#item = new Item(name, attributes);
    else if (name === "programme") this.#item = new Item(name, attributes);
    else if (this.#item === undefined) return;
    else if (name === "icon") this.#item.icon ||= cut(attributes.src, MAX_URL);
    this.#text = "";
    this.#textLimit = TEXTS[name] ?? 0;
  }

  #addText(text: string): void {
    if (this.#text.length < this.#textLimit) this.#text += text.slice(0, this.#textLimit - this.#text.length);
  }

  #close(name: string): void {
    this.#depth--;
    if (name === "tv") this.#isClosed = true;
    const item = this.#item;
    if (item === undefined) return;
    if (name === item.kind) {
      this.#item = undefined;
      this.#emit(item);
      return;
    }
    const text = this.#text.trim();
    this.#text = "";
    this.#textLimit = 0;
    if (text === "") return;
    if (name === "display-name" && item.names.length < MAX_NAMES) item.names.push(text);
    else if (name === "category" && item.categories.length < MAX_CATEGORIES) item.categories.push(text);
    // A guide may repeat a text in several languages; the first is the channel's own.
    else if (name === "title") item.title ||= text;
    else if (name === "sub-title") item.subtitle ||= text;
    else if (name === "desc") item.description ||= text;
    else if (name === "episode-num") item.episode ||= text;
  }

  #emit({ kind, attributes, names, icon, title, subtitle, description, categories, episode }: Item): void {
    if (kind === "channel") {
      const id = cut(attributes.id, MAX_ID);
      if (id !== "") this.#handler.channel({ id, names, icon });
      return;
    }
    const channel = cut(attributes.channel, MAX_ID);
    const start = xmltvTime(attributes.start ?? "");
    const stop = xmltvTime(attributes.stop ?? "");
    if (channel === "" || start === undefined || title === "") return;
    if (stop !== undefined && stop <= start) return;
    this.#handler.programme({
      channel,
      start,
      stop,
      title,
      subtitle,
      description,
      categories,
      icon,
      episode,
    });
  }
}

/** A channel or programme that is being read. */
class Item {
  readonly kind: "channel" | "programme";
  readonly attributes: Readonly<Record<string, string>>;
  readonly names: string[] = [];
  readonly categories: string[] = [];
  icon = "";
  title = "";
  subtitle = "";
  description = "";
  episode = "";

  constructor(kind: "channel" | "programme", attributes: Readonly<Record<string, string>>) {
    this.kind = kind;
    this.attributes = attributes;
  }
}

function cut(text: string | undefined, limit: number): string {
  return (text ?? "").trim().slice(0, limit);
}

/**
 * Reads a time such as `20261122201500 +0100` or `202611222015` (xmltv.dtd: a prefix of YYYYMMDDhhmmss, then an offset; UTC without
 * one). Returns undefined for anything else.
 */
function xmltvTime(text: string): UnixSeconds | undefined {
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)?(\d\d)?(\d\d)?\s*(?:([+-])(\d\d):?(\d\d)|UTC|GMT|Z)?$/.exec(
    text.trim(),
  );
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((digits) => Number(digits ?? 0));
  const utc = Date.UTC(year!, month! - 1, day, hour, minute, second);
  if (!Number.isFinite(utc)) return undefined;
  const [, , , , , , , sign, hours, minutes] = match;
  const offset =
    sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * 60 * (sign === "-" ? -1 : 1);
  const time = utc / 1000 - offset;
  return time >= 0 && time < 2 ** 32 ? (time as UnixSeconds) : undefined;
}
