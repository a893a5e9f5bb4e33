import type { LogRing } from "../activity/log-ring.ts";
import type { Log, LogFields, LogLevel, LogLine } from "../base/log.ts";

const RANKS: Readonly<Record<LogLevel, number>> = { silent: 0, error: 1, warn: 2, info: 3, debug: 4 };
const COLORS: Readonly<Record<LogLevel, string>> = {
  silent: "",
  error: "\x1b[31m",
  warn: "\x1b[33m",
  info: "\x1b[36m",
  debug: "\x1b[90m",
};
const PLAIN = "\x1b[0m";

/** Options of {@link createLog}. */
export interface LogOptions {
  readonly level: LogLevel;
  /** `json`: one object per line, with `time`, `level`, `component`, `message` and the fields. Default: `text`. */
  readonly format?: "text" | "json";
  readonly colors: boolean;
  /** Writes one line; it includes the newline. */
  readonly write: (line: string) => void;
  readonly wallClock: () => Date;
  /** Receives every line up to level `info`, and those of level `debug` if that is the level of the log. */
  readonly ring?: Pick<LogRing, "add"> | undefined;
}

/**
 * Creates a log that writes lines of time, level, component, message and `key=value` fields, or the same as JSON. Control characters
 * are escaped.
 */
export function createLog(options: LogOptions, part = ""): Log {
  const say = (level: LogLine["level"], message: string, fields?: LogFields) => {
    const isWritten = RANKS[level] <= RANKS[options.level];
    if (!isWritten && (options.ring === undefined || level === "debug")) return;
    const now = options.wallClock();
    const text = `${printable(message)}${written(fields)}`;
    options.ring?.add({ atMs: now.getTime(), level, part, text });
    if (!isWritten) return;
    if (options.format === "json") {
      const line = { time: now.toISOString(), level, component: part, message };
      // A field cannot replace a member of the line.
      options.write(`${printable(JSON.stringify({ ...line, ...fields, ...line }))}\n`);
      return;
    }
    const time = now.toISOString().slice(11, 23);
    const paint = (text: string) => (options.colors ? `${COLORS[level]}${text}${PLAIN}` : text);
    const place = part === "" ? "" : `${part}: `;
    options.write(`${time} ${paint(level.padEnd(5))} ${place}${text}\n`);
  };
  return {
    error: (message, fields) => say("error", message, fields),
    warn: (message, fields) => say("warn", message, fields),
    info: (message, fields) => say("info", message, fields),
    debug: (message, fields) => say("debug", message, fields),
    named: (name) => createLog(options, part === "" ? name : `${part}/${name}`),
  };
}

/** Escapes control and bidirectional characters: names from peers must not control a terminal or forge lines. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function written(fields: LogFields | undefined): string {
  let line = "";
  for (const [key, value] of Object.entries(fields ?? {})) {
    if (value === undefined) continue;
    const text = String(value);
    line += ` ${key}=${/^[^\s"=]+$/.test(text) ? printable(text) : JSON.stringify(printable(text))}`;
  }
  return line;
}
