import assert from "node:assert/strict";
import { test } from "node:test";
import type { HoldUpCode, LiveFacts, PlaybackFacts } from "../../../src/engine/diagnosis/contract.ts";
import { explainHoldUp } from "../../../src/engine/diagnosis/hold-up.ts";
import type { SwarmFigures } from "../../../src/swarm/contract.ts";
import { NO_FIGURES } from "../../../src/swarm/figures.ts";

const SWARM: SwarmFigures = {
  ...NO_FIGURES,
  connectedPeers: 5,
  unchokedByPeers: 3,
  seeds: 2,
  hasMetadata: true,
  needed: 4,
  bytesPerSecondDown: 210_000,
};
const FACTS: PlaybackFacts = {
  waitingMs: 4_000,
  transport: "bt",
  figures: SWARM,
  neededBytesPerSecond: 600_000,
  downloadLimit: 0,
  proxyProblem: undefined,
  live: undefined,
};
const NO_PROXY = { proxyProblem: "SOCKS5 proxy 127.0.0.1:1080: connection refused" };
const LIVE: LiveFacts = { isOwn: false, parents: 2, hasEnded: false, silentMs: 100, minutesAhead: 0 };

const CASES: readonly (readonly [
  string,
  Partial<PlaybackFacts>,
  Partial<SwarmFigures>,
  HoldUpCode,
  RegExp,
])[] = [
  [
    "nobody is there",
    {},
    { connectedPeers: 0 },
    "no_peers",
    /No peer is connected: the link names no tracker\./,
  ],
  [
    "nobody is reached by the proxy",
    NO_PROXY,
    { connectedPeers: 0 },
    "proxy",
    /No peer.*--proxy.*SOCKS5 proxy 127\.0\.0\.1:1080: connection refused\.$/,
  ],
  [
    "a clock is wrong, live",
    { live: { ...LIVE, parents: 0, minutesAhead: 60 } },
    { connectedPeers: 0 },
    "clock",
    /60 min ahead of this machine's clock/,
  ],
  ["nobody is reached, live", { ...NO_PROXY, live: LIVE }, { connectedPeers: 0 }, "proxy", /refused/],
  ["somebody is reached all the same", NO_PROXY, { unchokedByPeers: 0 }, "choked", /All of 5 peers/],
  [
    "no server is reached",
    { ...NO_PROXY, transport: "hls" },
    { bytesPerSecondDown: 0 },
    "proxy",
    /server sends nothing.*--proxy.*refused/,
  ],
  [
    "a server that is reached all the same",
    { ...NO_PROXY, transport: "hls" },
    {},
    "server",
    /sends 210 kB\/s/,
  ],
  [
    "our own source, whatever the proxy does",
    { ...NO_PROXY, live: { ...LIVE, isOwn: true } },
    { connectedPeers: 0 },
    "source",
    /begun/,
  ],
  [
    "no metadata",
    {},
    { hasMetadata: false },
    "no_metadata",
    /None of the connected peers .5. has sent the description/,
  ],
  [
    "no piece layers",
    {},
    { hasMetadata: false, lacksLayers: true },
    "no_metadata",
    /connected peers .5. have not sent all hashes of the pieces yet/,
  ],
  [
    "nobody has it",
    {},
    { nowhere: 4, seeds: 0 },
    "no_seed",
    /None of the connected peers .5. has .*4 pieces.*no seed is among/,
  ],
  ["somebody has some of it", {}, { nowhere: 3 }, "slow_peers", /peers that give .3. send/],
  ["it is all here", {}, { needed: 0 }, "disk", /is here already/],
  ["memory is full", {}, { isOutOfMemory: true }, "disk", /--memory-limit/],
  ["all choke us", {}, { unchokedByPeers: 0 }, "choked", /All of 5 peers let us wait/],
  ["one chokes us", {}, { connectedPeers: 1, unchokedByPeers: 0 }, "choked", /The one peer lets us wait/],
  [
    "our own limit",
    { downloadLimit: 220_000 },
    { heldToBytesPerSecond: 220_000 },
    "own_limit",
    /limit of 220 kB\/s for downloads is used up .--download-limit.\.$/,
  ],
  [
    "the limit of this hour",
    { downloadLimit: 2_000_000 },
    { heldToBytesPerSecond: 220_000 },
    "own_limit",
    /limit of 220 kB\/s.*--schedule/,
  ],
  [
    "a limit that others share",
    { downloadLimit: 700_000 },
    { heldToBytesPerSecond: 700_000 },
    "own_limit",
    /limit of 700 kB\/s.*--download-limit.: this stream has 210 kB\/s of it\.$/,
  ],
  [
    "a limit that leaves twice what it takes",
    { downloadLimit: 1_300_000 },
    { heldToBytesPerSecond: 1_300_000, bytesPerSecondDown: 1_250_000 },
    "catching_up",
    /1\.3 MB\/s, which is enough/,
  ],
  [
    "a limit that leaves hardly more than it takes",
    { downloadLimit: 720_000 },
    { heldToBytesPerSecond: 720_000, bytesPerSecondDown: 710_000 },
    "own_limit",
    /limit of 720 kB\/s for downloads is used up .--download-limit.\.$/,
  ],
  [
    "our own limit, live",
    { downloadLimit: 220_000, live: LIVE },
    { heldToBytesPerSecond: 220_000 },
    "own_limit",
    /220 kB\/s/,
  ],
  ["a limit far away", { downloadLimit: 2_000_000 }, {}, "slow_peers", /send 210 kB\/s together/],
  ["slow peers", {}, {}, "slow_peers", /send 210 kB\/s together; it takes about 600 kB\/s to play/],
  ["it only begins", {}, { bytesPerSecondDown: 1_500_000 }, "catching_up", /1\.5 MB\/s, which is enough/],
  ["who knows what it takes", { neededBytesPerSecond: undefined }, {}, "slow_peers", /together\.$/],
  ["a slow server", { transport: "hls" }, {}, "server", /The server sends 210 kB\/s; it takes/],
  ["a live source is silent", { live: { ...LIVE, silentMs: 7_000 } }, {}, "source", /nothing new for 7 s/],
  ["a live stream has ended", { live: { ...LIVE, hasEnded: true } }, {}, "source", /has ended/],
  ["no place in a live swarm", { live: { ...LIVE, parents: 0 } }, {}, "choked", /room for one more viewer/],
  ["slow peers of a live stream", { live: LIVE }, {}, "slow_peers", /peers that give .2. send/],
  ["alone in a live swarm", { live: LIVE }, { connectedPeers: 0 }, "no_peers", /No peer/],
  [
    "our own source",
    { live: { ...LIVE, isOwn: true, silentMs: 9_000 } },
    { connectedPeers: 0 },
    "source",
    /9 s/,
  ],
];

for (const [what, facts, figures, code, sentence] of CASES) {
  test(`explainHoldUp: ${what}`, () => {
    const holdUp = explainHoldUp({ ...FACTS, ...facts, figures: { ...SWARM, ...figures } });
    assert.equal(holdUp.code, code);
    assert.match(holdUp.sentence, sentence);
    assert.match(holdUp.sentence, /^[A-Z].*\.$/);
  });
}

test("explainHoldUp gives the numbers behind the sentence", () => {
  assert.deepEqual(explainHoldUp(FACTS).numbers, {
    waiting_seconds: 4,
    peers: 5,
    giving_peers: 3,
    bytes_per_second: 210_000,
    needed_bytes_per_second: 600_000,
    missing_pieces: 4,
    nowhere: 0,
  });
  const { numbers } = explainHoldUp({ ...FACTS, live: { ...LIVE, silentMs: 2_500 } });
  assert.equal(numbers.source_silent_seconds, 2.5);
  assert.equal(numbers.missing_pieces, undefined);
});
