import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** The folders of the XDG base directory specification, for this program. */
export interface Folders {
  readonly dataDir: string;
  readonly configFile: string;
}

/** Where things are kept: `$XDG_DATA_HOME` and `$XDG_CONFIG_HOME`, or their defaults below the home folder. */
export function foldersOf(
  environment: Readonly<Record<string, string | undefined>>,
  home: string = homedir(),
): Folders {
  // The specification: "All paths set in these environment variables must be absolute", others are ignored.
  const base = (variable: string, fallback: string) => {
    const set = environment[variable];
    return set !== undefined && isAbsolute(set) ? set : join(home, fallback);
  };
  return {
    dataDir: join(base("XDG_DATA_HOME", ".local/share"), "sluice"),
    configFile: join(base("XDG_CONFIG_HOME", ".config"), "sluice", "config.json"),
  };
}
