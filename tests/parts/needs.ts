import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import * as runner from "node:test";
import { fileURLToPath } from "node:url";
import { missingFaultSupport } from "../crash/faults.ts";
import { LAUNCH } from "../web/chromium-launch.ts";
import { FIREFOX } from "../web/firefox.ts";
import { whyNoRouter } from "./home-router.ts";
import { PYTHON } from "./libtorrent.ts";
import { hasMulticast, listensOn } from "./loopback.ts";
import { whyNoSpaces } from "./namespaces.ts";
import { run } from "./process.ts";
import { reportFact } from "./test-report.ts";
import { type Need, TIER_VARIABLE, tierOfNeeds } from "./test-tiers.ts";

/** Returns why a test cannot run on this machine and what to do about it; undefined if it can. */
type Check = () => string | undefined | Promise<string | undefined>;

const CHECKS: Record<Need, Check> = {
  time: () => undefined,
  ffmpeg: program("ffmpeg", "ffmpeg"),
  chromium: () => (existsSync(LAUNCH.executablePath) ? undefined : missing("Chromium", "chromium")),
  firefox: () => (existsSync(FIREFOX) ? undefined : missing("Firefox", "firefox-esr")),
  mpv: program("mpv", "mpv"),
  vlc: program("cvlc", "vlc-bin vlc-plugin-base"),
  curl: program("curl", "curl"),
  perl: program("perl", "perl-base"),
  bash: program("bash", "bash"),
  zsh: program("zsh", "zsh"),
  fish: program("fish", "fish"),
  mandoc: program("mandoc", "mandoc"),
  openssl: program("openssl", "openssl"),
  libtorrent: pythonModule("libtorrent", "python3-libtorrent"),
  cryptography: pythonModule("cryptography", "python3-cryptography"),
  pychromecast: pythonModule("pychromecast", "python3-pychromecast"),
  gmediarender: program("gmediarender", "gmediarender"),
  kodi: () =>
    ["/usr/bin/kodi", "/usr/bin/xvfb-run", "/usr/share/kodi/addons/pvr.iptvsimple"].every((path) =>
      existsSync(path),
    )
      ? undefined
      : missing("Kodi", "kodi kodi-pvr-iptvsimple xvfb"),
  hdhomerun: program("hdhomerun_config", "hdhomerun-config"),
  xmltv: () =>
    isOnPath("tv_validate_file") && existsSync("/usr/share/xmltv/xmltv.dtd")
      ? undefined
      : missing("tv_validate_file", "xmltv-util"),
  transmission: program("transmission-cli", "transmission-cli transmission-daemon"),
  aria2: program("aria2c", "aria2"),
  opentracker: program("opentracker", "opentracker"),
  nginx: program("nginx", "nginx-light"),
  redis: program("redis-server", "redis-server"),
  webtorrent: () =>
    existsSync(fileURLToPath(new URL("../interop/webtorrent/node_modules", import.meta.url)))
      ? undefined
      : "webtorrent is not installed: npm ci --ignore-scripts --omit=optional in tests/interop/webtorrent",
  namespaces: whyNoSpaces,
  router: whyNoRouter,
  strace: missingFaultSupport,
  multicast: async () =>
    (await hasMulticast()) ? undefined : "multicast does not loop back: enable it on a network interface",
  ipv6: async () => ((await listensOn("::1")) ? undefined : "::1 is not available: enable IPv6"),
};

/** The functions of `node:test` that a test file uses. */
type TestFunctions = Pick<
  typeof runner,
  "test" | "describe" | "before" | "after" | "beforeEach" | "afterEach"
>;

/**
 * Returns the functions of `node:test` for tests that need programs or abilities of the machine. If something is missing,
 * each test is skipped by name with the reason, and hooks do not run. Tests of another tier than that of the run are left out.
 */
export async function testsThatNeed(...needs: readonly Need[]): Promise<TestFunctions> {
  const tier = process.env[TIER_VARIABLE];
  if (tier && tier !== "all" && tier !== tierOfNeeds(needs)) return leftOut();
  const reason = await whyMissing(...needs);
  return reason === undefined ? runner : skipped(reason);
}

/** Returns what is missing on this machine, with advice; undefined if all needs are met. */
export async function whyMissing(...needs: readonly Need[]): Promise<string | undefined> {
  for (const need of needs) {
    const reason = await CHECKS[need]();
    if (reason !== undefined) return reason;
  }
  return undefined;
}

const ignore = () => {};
const NO_HOOKS = { before: ignore, after: ignore, beforeEach: ignore, afterEach: ignore };

function leftOut(): TestFunctions {
  const nothing = ignore as never;
  return { ...NO_HOOKS, describe: nothing, test: nothing };
}

function skipped(reason: string): TestFunctions {
  const test = (name: string) => {
    reportFact({ kind: "skip", name, reason });
    return runner.test(name, { skip: reason }, () => {});
  };
  return { ...NO_HOOKS, describe: runner.describe, test: test as typeof runner.test };
}

function missing(name: string, debianPackages: string): string {
  return `${name} is not installed: apt-get install ${debianPackages}`;
}

function program(command: string, debianPackages: string): Check {
  return () => (isOnPath(command) ? undefined : missing(command, debianPackages));
}

function pythonModule(name: string, debianPackage: string): Check {
  return () =>
    run(PYTHON, ["-c", `import ${name}`]).then(
      () => undefined,
      () => missing(`${name} for ${PYTHON}`, debianPackage),
    );
}

function isOnPath(command: string): boolean {
  return `${process.env.PATH}${delimiter}/usr/sbin`.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
