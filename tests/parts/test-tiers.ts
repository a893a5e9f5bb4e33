/** Which tests run together; `tests/run.ts` sets the tier. */
export const TIERS = ["fast", "e2e", "interop"] as const;
export type Tier = (typeof TIERS)[number];

/** The variable with the tier of the run. Without it a test file runs all its tests. */
export const TIER_VARIABLE = "TESTS_TIER";

/**
 * Everything a test may need beyond a machine with Node, npm and git, and the tier that this puts it into: `fast` if every
 * machine should have it, `e2e` for media programs and browsers, `interop` for other peers and for networks of the kernel.
 */
export const TIER_OF_NEED = {
  multicast: "fast",
  ipv6: "fast",
  /** More than a few seconds on the real clock or the processor. */
  time: "e2e",
  ffmpeg: "e2e",
  chromium: "e2e",
  firefox: "e2e",
  mpv: "e2e",
  vlc: "e2e",
  curl: "e2e",
  strace: "e2e",
  perl: "e2e",
  bash: "e2e",
  zsh: "e2e",
  fish: "e2e",
  mandoc: "e2e",
  openssl: "e2e",
  cryptography: "interop",
  libtorrent: "interop",
  pychromecast: "interop",
  gmediarender: "interop",
  hdhomerun: "interop",
  kodi: "interop",
  xmltv: "interop",
  transmission: "interop",
  aria2: "interop",
  opentracker: "interop",
  nginx: "interop",
  redis: "interop",
  webtorrent: "interop",
  namespaces: "interop",
  router: "interop",
} as const satisfies Record<string, Tier>;

export type Need = keyof typeof TIER_OF_NEED;

/** The tier of a test with these needs: the slowest of their tiers. */
export function tierOfNeeds(needs: readonly Need[]): Tier {
  return TIERS[Math.max(0, ...needs.map((need) => TIERS.indexOf(TIER_OF_NEED[need])))]!;
}

/** The tiers of the tests in a file, by its text: calls of `testsThatNeed`, and tests of `node:test`, which are fast. */
export function tiersInFile(text: string): ReadonlySet<Tier> {
  const tiers = new Set<Tier>();
  for (const [, list] of text.matchAll(/testsThatNeed\(([^)]*)\)/g)) {
    const needs = [...list!.matchAll(/"(\w+)"/g)].map(([, need]) => need as Need);
    // A list that is computed names other peers.
    tiers.add(needs.length === 0 ? "interop" : tierOfNeeds(needs));
  }
  const imported = /import (?:type )?\{([^}]*)\} from "node:test"/.exec(text)?.[1] ?? "";
  if (/(^|[\s,])test\b/.test(imported)) tiers.add("fast");
  return tiers;
}

/** Returns true if a fast run executes only a part of a test in a file, by its text. */
export function isShortenedInFastRuns(text: string): boolean {
  return text.includes("isFastRun");
}

/** True if this run should be short: fewer seeds and inputs than in `npm run test:all`. */
export const isFastRun = process.env[TIER_VARIABLE] === "fast";
