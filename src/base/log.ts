/** Log level; each level includes the levels before it. */
export type LogLevel = "silent" | "error" | "warn" | "info" | "debug";

/** One line of the log. */
export interface LogLine {
  /** Counts all lines since the start. */
  readonly number: number;
  /** UNIX milliseconds. */
  readonly atMs: number;
  readonly level: Exclude<LogLevel, "silent">;
  /** The component, such as `p2p/dht`; empty for the program itself. */
  readonly part: string;
  /** The message and its fields; control characters are escaped. */
  readonly text: string;
}

/** The log of the engine. Fields are printed as `key=value`. Callers never pass secrets. */
export interface Log {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** Returns a log that writes to the same place and prefixes each line with `part`. */
  named(part: string): Log;
}

/** A log that drops everything, for parts that run apart from the engine. */
export const SILENT_LOG: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => SILENT_LOG };

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
