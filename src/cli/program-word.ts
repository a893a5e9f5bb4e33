/** How whoever reads starts the program, for commands that are to be copied: `sluice`, or as npm and Bun start it from its folder. */
export function programWord(environment: Readonly<Record<string, string | undefined>>): string {
  // Both say which script runs, and who they are: `npm/10.2.4 node/…`, `bun/1.4.5 …`.
  if (environment.npm_lifecycle_event !== "start") return "sluice";
  return environment.npm_config_user_agent?.startsWith("bun/") ? "bun run start" : "npm start --";
}
