import { testsThatNeed, whyMissing } from "../parts/needs.ts";
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
/** Large enough to verify the transfer. */
const SMALL_SIZE = 4 * 1024 * 1024 + 321;

/** The peer program, and the settings of the engine. */
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
const playable: Case[] = [];
for (const each of CASES) if (await isHere(each)) playable.push(each);

for (const each of CASES) {
  const name = `interop with ${each.peer.name}, encryption ${each.encryption}`;
  const { test } = await testsThatNeed(...each.peer.needs);
  test(`${name}: the whole file both ways, hash-equal`, { timeout: 240_000 }, () => {
    // The peers mostly wait for their own timers, so all of them run at once.
    if (running.size === 0) for (const one of playable) running.set(one, play(one));
    // A failure with another peer is reported by that peer's test.
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

async function isHere({ peer }: Case): Promise<boolean> {
  return (await whyMissing(...peer.needs)) === undefined;
}
