import assert from "node:assert/strict";
import { test } from "node:test";
import { explainBuffering } from "../../../src/playback/diagnosis/buffering.ts";
import type { BufferingReason, LiveFacts, PlaybackFacts } from "../../../src/playback/diagnosis/contract.ts";
import type { SwarmFigures } from "../../../src/protocol/swarm/contract.ts";
import { NO_FIGURES } from "../../../src/protocol/swarm/figures.ts";

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
const LIVE: LiveFacts = {
  isOwn: false,
  parents: 2,
  hasEnded: false,
  isForked: false,
  silentMs: 100,
  minutesAhead: 0,
};

const CASES: readonly (readonly [
  string,
  Partial<PlaybackFacts>,
  Partial<SwarmFigures>,
  BufferingReason,
  RegExp,
])[] = [
  [
    "no peer is connected",
    {},
    { connectedPeers: 0 },
    "no_peers",
    /No peer is connected: the link names no tracker\./,
  ],
  [
    "no peer is connected and the proxy fails",
    NO_PROXY,
    { connectedPeers: 0 },
    "proxy",
    /No peer.*--proxy.*SOCKS5 proxy 127\.0\.0\.1:1080: connection refused\.$/,
  ],
  [
    "a live stream is ahead of the clock",
    { live: { ...LIVE, parents: 0, minutesAhead: 60 } },
    { connectedPeers: 0 },
    "clock",
    /60 min ahead of this machine's clock/,
  ],
  [
    "two programs sign a live stream",
    { live: { ...LIVE, isForked: true } },
    {},
    "source",
    /Two programs sign/,
  ],
  ["the proxy fails, live", { ...NO_PROXY, live: LIVE }, { connectedPeers: 0 }, "proxy", /refused/],
  [
    "the proxy fails but peers are connected",
    NO_PROXY,
    { unchokedByPeers: 0 },
    "choked",
    /All 5 connected peers/,
  ],
  [
    "no server is reached and the proxy fails",
    { ...NO_PROXY, transport: "hls" },
    { bytesPerSecondDown: 0 },
    "proxy",
    /server sends nothing.*--proxy.*refused/,
  ],
  [
    "the proxy fails but the server sends",
    { ...NO_PROXY, transport: "hls" },
    {},
    "server",
    /sends 210 kB\/s/,
  ],
  [
    "an own broadcast does not depend on the proxy",
    { ...NO_PROXY, live: { ...LIVE, isOwn: true } },
    { connectedPeers: 0 },
    "source",
    /only just started/,
  ],
  [
    "no metadata",
    {},
    { hasMetadata: false },
    "no_metadata",
    /None of the connected peers .5. has sent the metadata/,
  ],
  [
    "no piece layers",
    {},
    { hasMetadata: false, lacksLayers: true },
    "no_metadata",
    /connected peers .5. have not sent all piece hashes yet/,
  ],
  [
    "no peer has the next pieces",
    {},
    { nowhere: 4, seeds: 0 },
    "no_seed",
    /None of the connected peers .5. has .*4 pieces.*seeds among them: 0/,
  ],
  ["a peer has one of the next pieces", {}, { nowhere: 3 }, "slow_peers", /peers that send data .3. send/],
  ["all next pieces are held", {}, { needed: 0 }, "disk", /already present/],
  ["memory is full", {}, { isOutOfMemory: true }, "disk", /--memory-limit/],
  ["all peers choke us", {}, { unchokedByPeers: 0 }, "choked", /All 5 connected peers .*choking us/],
  [
    "the only peer chokes us",
    {},
    { connectedPeers: 1, unchokedByPeers: 0 },
    "choked",
    /The only connected peer/,
  ],
  [
    "the download limit is used up",
    { downloadLimit: 220_000 },
    { limitedToBytesPerSecond: 220_000 },
    "own_limit",
    /limit of 220 kB\/s for downloads is used up .--download-limit.\.$/,
  ],
  [
    "a scheduled limit is used up",
    { downloadLimit: 2_000_000 },
    { limitedToBytesPerSecond: 220_000 },
    "own_limit",
    /limit of 220 kB\/s.*--schedule/,
  ],
  [
    "a limit is shared with other streams",
    { downloadLimit: 700_000 },
    { limitedToBytesPerSecond: 700_000 },
    "own_limit",
    /limit of 700 kB\/s.*--download-limit.: this stream has 210 kB\/s of it\.$/,
  ],
  [
    "a limit of twice the bitrate is not the reason",
    { downloadLimit: 1_300_000 },
    { limitedToBytesPerSecond: 1_300_000, bytesPerSecondDown: 1_250_000 },
    "catching_up",
    /1\.3 MB\/s, which is enough/,
  ],
  [
    "a limit of slightly more than the bitrate",
    { downloadLimit: 720_000 },
    { limitedToBytesPerSecond: 720_000, bytesPerSecondDown: 710_000 },
    "own_limit",
    /limit of 720 kB\/s for downloads is used up .--download-limit.\.$/,
  ],
  [
    "the download limit is used up, live",
    { downloadLimit: 220_000, live: LIVE },
    { limitedToBytesPerSecond: 220_000 },
    "own_limit",
    /220 kB\/s/,
  ],
  ["a limit that is not reached", { downloadLimit: 2_000_000 }, {}, "slow_peers", /send 210 kB\/s together/],
  ["slow peers", {}, {}, "slow_peers", /send 210 kB\/s together; playback needs about 600 kB\/s/],
  [
    "data has only started to arrive",
    {},
    { bytesPerSecondDown: 1_500_000 },
    "catching_up",
    /1\.5 MB\/s, which is enough/,
  ],
  ["the bitrate is unknown", { neededBytesPerSecond: undefined }, {}, "slow_peers", /together\.$/],
  ["a slow server", { transport: "hls" }, {}, "server", /The server sends 210 kB\/s; playback needs/],
  ["a live source is silent", { live: { ...LIVE, silentMs: 7_000 } }, {}, "source", /nothing new for 7 s/],
  ["a live stream has ended", { live: { ...LIVE, hasEnded: true } }, {}, "source", /has ended/],
  [
    "no free slot in a live swarm",
    { live: { ...LIVE, parents: 0 } },
    {},
    "choked",
    /free slot for one more viewer/,
  ],
  ["slow peers of a live stream", { live: LIVE }, {}, "slow_peers", /peers that send data .2. send/],
  ["no peer of a live stream", { live: LIVE }, { connectedPeers: 0 }, "no_peers", /No peer/],
  [
    "the input of an own broadcast is silent",
    { live: { ...LIVE, isOwn: true, silentMs: 9_000 } },
    { connectedPeers: 0 },
    "source",
    /9 s/,
  ],
];

for (const [what, facts, figures, code, sentence] of CASES) {
  test(`explainBuffering: ${what}`, () => {
    const buffering = explainBuffering({ ...FACTS, ...facts, figures: { ...SWARM, ...figures } });
    assert.equal(buffering.code, code);
    assert.match(buffering.sentence, sentence);
    assert.match(buffering.sentence, /^[A-Z].*\.$/);
  });
}

test("explainBuffering: returns the numbers behind the sentence", () => {
  assert.deepEqual(explainBuffering(FACTS).numbers, {
    waiting_seconds: 4,
    peers: 5,
    giving_peers: 3,
    bytes_per_second: 210_000,
    needed_bytes_per_second: 600_000,
    missing_pieces: 4,
    nowhere: 0,
  });
  const { numbers } = explainBuffering({ ...FACTS, live: { ...LIVE, silentMs: 2_500 } });
  assert.equal(numbers.source_silent_seconds, 2.5);
  assert.equal(numbers.missing_pieces, undefined);
});
