import * as v from "valibot";

/** How one kind of setting is written: the schema that reads it, and the words that name it in help and errors. */
export interface SettingKind<T> {
  readonly schema: v.GenericSchema<unknown, T>;
  /** The placeholder in `--help`, such as `SIZE`. */
  readonly placeholder: string;
  /** Completes "expected …" in an error. */
  readonly expected: string;
  /** No message repeats its value. */
  readonly isSecret?: boolean;
}

const BYTE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};

const DURATION_UNITS: Readonly<Record<string, number>> = { "": 1e3, ms: 1, s: 1e3, m: 60e3, h: 3600e3 };

/** Reads `20GB`, `64MiB`, `1.5 GB` or a bare number of bytes; undefined where it is none of these. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?([KMGT]?i?B?)$/i.exec(text.trim());
  if (match === null) return undefined;
  const letters = match[2]!.toUpperCase();
  const unit = BYTE_UNITS[letters === "" || letters.endsWith("B") ? letters : `${letters}B`];
  const bytes = Math.round(Number(match[1]) * (unit ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Reads `250ms`, `30s`, `5m`, `2h` or a bare number of seconds, as milliseconds; undefined where it is none of these. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|)$/.exec(text.trim());
  if (match === null) return undefined;
  const ms = Math.round(Number(match[1]) * DURATION_UNITS[match[2]!]!);
  // A timer cannot wait longer than 2^31 ms; nobody means to wait a month.
  return ms < 2 ** 31 ? ms : undefined;
}

/** Any text that is not empty. */
export function text(placeholder: string, expected: string): SettingKind<string> {
  return { placeholder, expected, schema: v.pipe(v.string(), v.trim(), v.nonEmpty()) };
}

/** A whole number from `min` to `max`. */
export function integer(placeholder: string, min: number, max: number): SettingKind<number> {
  return {
    placeholder,
    expected: `a whole number from ${min} to ${max}`,
    schema: v.pipe(
      v.union([v.number(), v.pipe(v.string(), v.trim(), v.regex(/^\d+$/), v.transform(Number))]),
      v.integer(),
      v.minValue(min),
      v.maxValue(max),
    ),
  };
}

/** Bytes, written as a size. */
export function size(min = 0): SettingKind<number> {
  const least = min > 0 ? `, at least ${formatSize(min)}` : "";
  return {
    placeholder: "SIZE",
    expected: `a size such as 20GB or 512MiB${least}`,
    schema: v.pipe(amount(parseSize), v.minValue(min)),
  };
}

/** Bytes a second, written as a size; 0 means no limit. */
export function rate(): SettingKind<number> {
  const strip = (written: string) => parseSize(written.trim().replace(/(\/s|ps)$/i, ""));
  return {
    placeholder: "RATE",
    expected: "bytes a second such as 2MB or 500KB, or 0 for no limit",
    schema: amount(strip),
  };
}

/** Milliseconds, written as a duration. */
export function duration(minMs: number): SettingKind<number> {
  return {
    placeholder: "TIME",
    expected: `a time such as 30s or 5m (a bare number is seconds), at least ${formatDuration(minMs)}`,
    schema: v.pipe(amount(parseDuration), v.minValue(minMs)),
  };
}

/** One of a few words. */
export function choice<const T extends string>(...words: readonly T[]): SettingKind<T> {
  return {
    placeholder: words.join("|"),
    expected: `one of ${words.join(", ")}`,
    schema: v.pipe(v.string(), v.trim(), v.toLowerCase(), v.picklist(words)),
  };
}

/** A switch. */
export function onOff(): SettingKind<"on" | "off"> {
  return choice("on", "off");
}

/** The number of a text that `parse` understands. A bare JSON number is read as the text that writes it. */
function amount(parse: (text: string) => number | undefined): v.GenericSchema<unknown, number> {
  return v.pipe(
    v.union([v.string(), v.pipe(v.number(), v.minValue(0), v.transform(String))]),
    v.transform((written) => parse(written)),
    v.number(),
  );
}

/** Writes bytes the way {@link parseSize} reads them, in the largest unit that fits. */
export function formatSize(bytes: number): string {
  for (const unit of ["TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "KB"]) {
    const per = BYTE_UNITS[unit.toUpperCase()]!;
    if (bytes >= per && bytes % per === 0) return `${bytes / per}${unit}`;
  }
  return String(bytes);
}

/** Writes milliseconds the way {@link parseDuration} reads them, in the largest unit that fits. */
export function formatDuration(ms: number): string {
  for (const unit of ["h", "m", "s"]) {
    const per = DURATION_UNITS[unit]!;
    if (ms >= per && ms % per === 0) return `${ms / per}${unit}`;
  }
  return `${ms}ms`;
}
