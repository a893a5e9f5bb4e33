/** A flag of a command. Most commands also take every setting as a flag. */
export interface CommandFlag {
  readonly name: string;
  readonly short?: string;
  /** Placeholder of its value; absent for a flag without a value. */
  readonly value?: string;
  /** All accepted values, for completion. */
  readonly values?: readonly string[];
  readonly help: string;
  /** May be given more than once. */
  readonly isRepeated?: boolean;
}

/** A subcommand, as the parser, the help, the man page and the shell completions use it. */
export interface Command {
  readonly name: CommandName;
  readonly summary: string;
  /** The operands in the usage line. */
  readonly operands: string;
  readonly maxOperands: number;
  /** Completion of the first operand: `files`, or these words. */
  readonly completes?: "files" | readonly string[];
  readonly flags: readonly CommandFlag[];
  readonly takesSettings: boolean;
  /** The settings that its help lists; `sluice settings` lists all. */
  readonly shownSettings?: readonly string[];
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}

export type CommandName =
  | "serve"
  | "play"
  | "broadcast"
  | "relay"
  | "viewer-page"
  | "status"
  | "doctor"
  | "settings"
  | "token"
  | "account"
  | "backup"
  | "restore"
  | "migrate"
  | "completions"
  | "man"
  | "version"
  | "help";

/** The flag of commands whose result programs can read. */
export const JSON_FLAG: CommandFlag = { name: "json", help: "Write the result as JSON" };
