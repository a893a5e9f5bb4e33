/** How much is said: each level includes those before it. */
export type LogLevel = "silent" | "error" | "warn" | "info" | "debug";

/** Where the engine says what it does. Fields are printed as `key=value`; secrets never get here. */
export interface Log {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** The same log with the name of a part before each line. */
  named(part: string): Log;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
