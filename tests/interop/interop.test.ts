import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { bothWays } from "./both-ways.ts";
import {
  aria2,
  type ForeignPeer,
  libtorrent,
  libtorrentWith,
  transmission,
  transmissionWith,
  webtorrent,
} from "./other-peers.ts";

const SIZE = 24 * 1024 * 1024 + 12_345;
/** Enough to see that it arrives as it was. */
const SMALL_SIZE = 4 * 1024 * 1024 + 321;

const WEBTORRENT_FOLDER = fileURLToPath(new URL("./webtorrent/node_modules", import.meta.url));

/** Whom we play with, and what we are set to. */
interface Case {
  readonly peer: ForeignPeer;
  readonly sizeBytes: number;
  readonly encryption: string;
  /** Over UDP too. */
  readonly utp?: boolean;
}

const CASES: readonly Case[] = [
  ...[libtorrent, transmission, aria2, webtorrent].map((peer) => ({
    peer,
    sizeBytes: SIZE,
    encryption: "allow",
  })),
  encrypted(libtorrentWith(["--encryption", "required"]), "allow"),
  encrypted(libtorrent, "require"),
  encrypted(libtorrentWith(["--encryption", "refused"]), "prefer"),
  { ...encrypted(libtorrentWith(["--utp", "--encryption", "required"]), "allow"), utp: true },
  encrypted(transmissionWith("-er"), "allow"),
  encrypted(transmission, "require"),
];
const running = new Map<Case, Promise<void>>();

for (const each of CASES) {
  const skip =
    !isHere(each) && "webtorrent is not installed: npm ci --ignore-scripts in tests/interop/webtorrent";
  const name = `interop with ${each.peer.name}, encryption ${each.encryption}`;
  test(`${name}: the whole file both ways, hash-equal`, { skip, timeout: 240_000 }, () => {
    // Most of them wait for timers of their own most of the time, so all of them play at once.
    if (running.size === 0) for (const one of CASES.filter(isHere)) running.set(one, play(one));
    // What goes wrong with another one is told by its own test.
    for (const one of running.values()) one.catch(() => {});
    return running.get(each);
  });
}

function encrypted(peer: ForeignPeer, encryption: string): Case {
  return { peer, sizeBytes: SMALL_SIZE, encryption };
}

function play({ peer, sizeBytes, encryption, utp = false }: Case): Promise<void> {
  const env = { SLUICE_ENCRYPTION: encryption, SLUICE_UTP: utp ? "on" : "off" };
  return bothWays(peer, { sizeBytes, env });
}

function isHere({ peer }: Case): boolean {
  return peer !== webtorrent || existsSync(WEBTORRENT_FOLDER);
}
