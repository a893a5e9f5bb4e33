import type { House } from "./house.ts";

/**
 * CHOICE(version): deployed clients switch features by this number, so it says which generation of the interface is
 * spoken, not how old this program is; `code` = major · 1,000,000 + minor · 10,000 + patch · 100.
 */
const INTERFACE_VERSION = { version: "3.2.11", code: 3_021_100 };

/** What `get_version` tells (interface: Control API). */
export function versionOf(house: Pick<House, "version" | "platform">) {
  return {
    ...INTERFACE_VERSION,
    platform: house.platform ?? "linux",
    engine: "Sluice",
    engine_version: house.version,
  };
}
