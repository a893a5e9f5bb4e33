import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { runtime } from "#runtime";
import { infohashOf } from "../../src/base/ids.ts";
import { after } from "../../src/base/time.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { inFolder } from "../contract/folder.ts";
import { loopbackPeer, PieceMaker, someStream } from "../live/driver-parts.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { serveMetadata } from "../transfer/transfer-dependencies.ts";
import { KEY, RECIPE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";

const { test } = await testsThatNeed("libtorrent", "transmission", "aria2");

/** Runs a program for at most 20 s and returns both its outputs. */
async function said(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: 20_000 });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (text += part));
  await once(child, "close");
  return text;
}

/** Downloads for at most 3 s, without DHT or other discovery, and prints the result. */
const LIBTORRENT = `
import libtorrent as lt, sys, time
session = lt.session({"listen_interfaces": "127.0.0.1:0", "enable_dht": False, "enable_lsd": False,
  "enable_upnp": False, "enable_natpmp": False, "enable_outgoing_utp": False,
  "alert_mask": lt.alert.category_t.all_categories})
params = lt.parse_magnet_uri(sys.argv[1])
params.save_path = sys.argv[3]
handle = session.add_torrent(params)
host, port = sys.argv[2].rsplit(":", 1)
handle.connect_peer((host, int(port)))
end = time.monotonic() + 5
while time.monotonic() < end:
  for alert in session.pop_alerts():
    if "metadata_failed" in type(alert).__name__: sys.exit("metadata refused: " + alert.message())
  if handle.status().has_metadata: sys.exit("joined")
  time.sleep(0.02)
sys.exit("no metadata came")
`;

const FILE = makeLiveTransportFile({ ...RECIPE, trackers: [] }, KEY.sign);
const REFUSALS: Record<string, { command: string; args(path: string): string[]; says: RegExp }> = {
  libtorrent: {
    command: PYTHON,
    args: (path) => ["-c", "import libtorrent, sys\nlibtorrent.torrent_info(sys.argv[1])", path],
    says: /RuntimeError: (invalid length of torrent|missing or invalid)/,
  },
  transmission: {
    command: "transmission-show",
    args: (path) => [path],
    says: /Error parsing \.torrent file/,
  },
  aria2: { command: "aria2c", args: (path) => ["-S", path], says: /Missing pieces in torrent metainfo/ },
};

for (const [name, { command, args, says }] of Object.entries(REFUSALS)) {
  test(`${name} refuses the transport file of a live stream`, () =>
    inFolder(async (folder) => {
      const path = `${folder}/live.torrent`;
      await writeFile(path, FILE);
      const text = await said(command, args(path));
      assert.match(text, says);
    }));
}

test("libtorrent fetches the metadata of a live stream by magnet, and refuses it", () =>
  inFolder(async (folder) => {
    const { infoBytes } = parseLiveTransportFile(FILE, sha1, runtime.ed25519Verifier);
    const peer = await serveMetadata(infoBytes);
    assert.equal(peer.infohash, infohashOf(sha1(infoBytes)));
    const { host, port } = peer.address;
    const magnet = `magnet:?xt=urn:btih:${peer.infohash}`;
    const text = await said(PYTHON, ["-c", LIBTORRENT, magnet, `${host}:${port}`, folder]);
    await peer.close();
    assert.match(text, /metadata refused/);
  }));

test("libtorrent that joins a live stream by magnet gets the metadata, and costs the viewers nothing", () =>
  inFolder(async (folder) => {
    const stream = someStream();
    const source = await loopbackPeer(stream, "source");
    const viewer = await loopbackPeer(stream, "viewer");
    const maker = new PieceMaker(stream);
    const { clock } = runtime;
    let cancel = () => {};
    const next = () => {
      const { header, chunks } = maker.make(new Uint8Array(9_400));
      source.driver.produce(header, chunks);
      cancel = clock.at(after(clock.now(), stream.file.info.pieceMs), next);
    };
    next();
    viewer.driver.found([source.address]);
    await viewer.sink.until(({ pieces }) => pieces.length >= 5);
    const magnet = `magnet:?xt=urn:btih:${stream.file.infohash}`;
    const { host, port } = source.address;
    const text = await said(PYTHON, ["-c", LIBTORRENT, magnet, `${host}:${port}`, folder]);
    const { length } = viewer.sink.pieces;
    await viewer.sink.until(({ pieces }) => pieces.length >= length + 10);
    cancel();
    const { bannedPeers } = source.driver.swarmFigures();
    const { seq } = viewer.sink.pieces[0]!;
    const seqs = viewer.sink.pieces.map((piece) => piece.seq);
    await Promise.all([source.close(), viewer.close()]);
    assert.match(text, /metadata refused/);
    assert.equal(bannedPeers, 0);
    assert.deepEqual(
      seqs,
      seqs.map((_, i) => seq + i),
    );
  }));
