import { addressText } from "../../src/base/address.ts";
import { HOSTILE_KINDS, type HostileKind } from "./hostile-peer.ts";
import { makeContent } from "./simulated-content.ts";
import type { HostLine } from "./simulated-net.ts";
import { FIBRE, KB, MB, type Report, World } from "./world.ts";

/** Seeders with little upload: no single one sustains the bitrate. */
const DSL: HostLine = { up: 300 * KB, down: 3 * MB, latencyMs: 12, jitterMs: 5 };
/** 8 Mbit/s. */
const BITRATE = 1_000_000;
const FILM = { length: 24 * MB, pieceLength: 256 * KB };

/** One player, ten ordinary seeders. */
function clean(seed: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < 10; i++) world.seeder(DSL);
  world.play(world.leecher(), BITRATE);
  world.run(120_000);
  return world;
}

/** Twenty seeders, some of which corrupt every second block. */
function poison(seed: number, liars: number, share = 0.5): World {
  const world = new World(seed, { length: 48 * MB, pieceLength: 256 * KB });
  for (let i = 0; i < 20; i++) world.seeder(DSL, i < liars ? { poison: share } : {});
  world.play(world.leecher(), BITRATE);
  world.run(180_000);
  return world;
}

/** The fastest seeder freezes just after the start while it holds urgent blocks, without closing
 * connections. It continues for a while, then freezes for good. */
function freeze(seed: number): World {
  const world = new World(seed, FILM);
  const fast = world.seeder({ ...FIBRE, up: 3 * MB });
  for (let i = 0; i < 5; i++) world.seeder(DSL);
  world.play(world.leecher(), BITRATE);
  world.events.at(800, () => fast.host.freeze(true));
  world.events.at(6_000, () => fast.host.freeze(false));
  world.events.at(9_000, () => fast.host.freeze(true));
  world.run(120_000);
  return world;
}

/** Peers that send one byte a second, next to a few good ones. */
function drip(seed: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < 6; i++) world.seeder({ ...DSL, connectionRate: 20 });
  for (let i = 0; i < 6; i++) world.seeder(DSL);
  world.play(world.leecher(), BITRATE);
  world.run(120_000);
  return world;
}

/** Half of the peers leave every 30 s, half of these without closing connections, and are replaced. The
 * supply is twice the bitrate. */
function churn(seed: number): World {
  const world = new World(seed, { length: 60 * MB, pieceLength: 512 * KB });
  world.tracker.minIntervalSeconds = 30;
  const line = { ...DSL, up: 100 * KB };
  let present = Array.from({ length: 10 }, () => world.seeder(line));
  world.play(world.leecher(), BITRATE / 2);
  for (let at = 30_000; at < 150_000; at += 30_000) {
    world.events.at(at, () => {
      for (const [i, node] of present.splice(0, 5).entries()) {
        world.tracker.forget(node.host.address);
        node.leave(i % 2 === 0);
      }
      present = [...present, ...Array.from({ length: 5 }, () => world.seeder(line))];
    });
  }
  world.run(240_000);
  return world;
}

/** Three readers of one transfer at different positions. */
function readers(seed: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < 10; i++) world.seeder(DSL);
  const node = world.leecher();
  for (let i = 0; i < 3; i++) {
    world.play(node, BITRATE / 2, { start: i * 8 * MB, end: (i + 1) * 8 * MB });
  }
  world.run(120_000);
  return world;
}

/** A player that seeks to three quarters after five seconds; the report covers the part after the seek. */
function seek(seed: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < 10; i++) world.seeder(DSL);
  const node = world.leecher();
  const first = world.play(node, BITRATE, { start: 0, end: 18 * MB });
  world.run(5_000, () => false);
  node.stop(first);
  world.play(node, BITRATE, { start: 18 * MB, end: 24 * MB });
  world.run(60_000);
  return world;
}

/** Only the infohash and a tracker are known. */
function magnet(seed: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < 10; i++) world.seeder(DSL);
  world.play(world.leecher(FIBRE, { isMagnet: true }), BITRATE);
  world.run(60_000);
  return world;
}

/** Half of the peers send wrong metadata. */
function magnetLiars(seed: number): World {
  const world = new World(seed, FILM);
  const fakeInfoBytes = world.content.infoBytes.map((byte, i) => (i % 20_000 === 7 ? byte ^ 1 : byte));
  for (let i = 0; i < 10; i++) world.seeder(DSL, i % 2 === 0 ? { fakeInfoBytes } : {});
  world.play(world.leecher(FIBRE, { isMagnet: true }), BITRATE);
  world.run(60_000);
  return world;
}

/** Peers that answer no request, next to one good one. */
function magnetSilent(seed: number, silent: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < silent; i++) world.hostile("withholds");
  world.seeder(FIBRE);
  world.play(world.leecher(FIBRE, { isMagnet: true }), BITRATE);
  world.run(60_000);
  return world;
}

/** Round trips of 100 ms and 2 % loss each way; twelve seeders provide 1.5 × the bitrate together. */
function loss(seed: number): World {
  const world = new World(seed, { length: 48 * MB, pieceLength: 256 * KB });
  const line = { up: 100 * KB, down: 4 * MB, latencyMs: 25, jitterMs: 10, loss: 0.02 };
  for (let i = 0; i < 12; i++) world.seeder(line);
  world.play(world.leecher({ ...FIBRE, latencyMs: 25 }), 800 * KB);
  world.run(240_000);
  return world;
}

/** Nineteen hostile peers of twenty, 14 of them in one network; the tracker knows all of them. */
function eclipse(seed: number): World {
  const world = new World(seed, FILM);
  for (let i = 0; i < 19; i++) {
    const address = i < 14 ? { host: `66.66.66.${i + 1}`, port: 6881 } : world.address();
    world.hostile((["chokes", "mute", "badPex", "flickers"] as const)[i % 4]!, address);
  }
  world.seeder(FIBRE);
  world.play(world.leecher(), BITRATE);
  world.run(120_000);
  return world;
}

/** One of each hostile kind next to six honest seeders. */
function hostile(seed: number): World {
  const world = new World(seed, FILM);
  for (const kind of HOSTILE_KINDS) world.hostile(kind);
  for (let i = 0; i < 6; i++) world.seeder(DSL);
  world.play(world.leecher(), BITRATE);
  world.run(120_000);
  return world;
}

/** One seeder whose line carries two copies; eight players share what they receive. */
function crowd(seed: number): World {
  const world = new World(seed, { length: 16 * MB, pieceLength: 256 * KB });
  world.seeder({ ...FIBRE, up: 1.5 * MB });
  for (let i = 0; i < 8; i++) world.play(world.leecher({ ...DSL, up: 1 * MB }), BITRATE / 2);
  world.run(180_000);
  return world;
}

/** The player knows one peer with a slow line and no tracker; it can learn of the others by PEX only. */
export function pex(seed: number, isPrivate = false): World {
  const world = new World(seed, makeContent(24 * MB, 256 * KB, seed, isPrivate));
  const first = world.seeder({ ...DSL, up: 50 * KB });
  for (let i = 0; i < 9; i++) world.seeder(DSL);
  world.run(5_000, () => false);
  const node = world.leecher(FIBRE, { trackers: new Map() });
  node.found([first.host.address], "magnet");
  world.play(node, BITRATE);
  world.run(isPrivate ? 30_000 : 120_000);
  return world;
}

/** All scenarios by name. */
export const SCENARIOS: Readonly<Record<string, (seed: number) => World>> = {
  clean,
  poison1: (seed) => poison(seed, 1),
  poison5: (seed) => poison(seed, 5),
  poison10: (seed) => poison(seed, 10),
  "poison10-all": (seed) => poison(seed, 10, 1),
  "poison10-rare": (seed) => poison(seed, 10, 0.05),
  freeze,
  drip,
  churn,
  readers,
  seek,
  magnet,
  "magnet-liars": magnetLiars,
  "magnet-silent10": (seed: number) => magnetSilent(seed, 10),
  "magnet-silent50": (seed: number) => magnetSilent(seed, 50),
  loss,
  eclipse,
  hostile,
  crowd,
  pex,
};

/** Returns the scenario of this name, which makes a world from a seed. Throws if there is none. */
export function scenarioNamed(name: string): (seed: number) => World {
  const scenario = SCENARIOS[name];
  if (!scenario) throw new Error(`no scenario ${name}; there are ${Object.keys(SCENARIOS).join(", ")}`);
  return scenario;
}

/** Runs a scenario and returns its report. */
export function runScenario(name: string, seed: number): Report {
  return scenarioNamed(name)(seed).report();
}

/** Two peers of one hostile kind (or none) next to six honest seeders. */
export function hostileKind(kind: HostileKind | undefined, seed: number): Report {
  const world = new World(seed, { length: 12 * MB, pieceLength: 256 * KB });
  if (kind) for (let i = 0; i < 2; i++) world.hostile(kind);
  for (let i = 0; i < 6; i++) world.seeder(DSL);
  world.play(world.leecher(), BITRATE);
  world.run(60_000);
  return world.report();
}

/** The liars that the players banned, for failing tests to print. */
export function bannedText(world: World): string {
  return world.nodes
    .flatMap((node) => node.banned.map((ban) => `${addressText(ban.address)} ${ban.reason} @${ban.at}`))
    .join("\n");
}
