import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand, freePort } from "../../parts/engine.ts";
import { PYTHON } from "../../parts/libtorrent.ts";
import { type BroadcastProcess, startBroadcast } from "../../parts/live-broadcast.ts";
import { testsThatNeed } from "../../parts/needs.ts";
import { run, startProcess } from "../../parts/process.ts";
import { type PythonViewerState, pythonViewerState, startPythonViewer } from "../../parts/python-viewer.ts";
import { type Attempt, inRealTime } from "../../parts/real-time.ts";
import { tempFolder } from "../../parts/torrent-files.ts";
import { checkTs } from "../../remux/ts-checker.ts";

const { test } = await testsThatNeed("cryptography");

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));
/** The pieces that a viewer plays: about ten seconds. */
const PIECES = 40;

/** Starts a broadcast that ends with the test. */
async function onAir(context: Attempt): Promise<BroadcastProcess> {
  const source = await startBroadcast("test-pattern");
  context.after(() => source.stop());
  return source;
}

/** Runs the viewer in Python until it has played {@link PIECES}; it must miss nothing and stay connected. */
async function watch(
  context: Attempt,
  { transportFile }: BroadcastProcess,
  port: number,
): Promise<PythonViewerState> {
  const folder = await tempFolder("python-viewer");
  context.after(() => folder.remove());
  const output = folder.file("watched.ts");
  const viewer = startPythonViewer(transportFile, output, [port]);
  context.after(() => viewer.stop());
  const line = await viewer.line(
    (each) => (pythonViewerState(each)?.pieces ?? 0) >= PIECES || /Error/.test(each),
  );
  await viewer.stop();
  const state = pythonViewerState(line);
  assert.ok(state, viewer.output());
  assert.deepEqual([state.missed, state.disconnected], [0, 0], viewer.output());
  const report = checkTs(await readFile(output), { isPassThrough: true });
  assert.deepEqual(report.faults, []);
  assert.ok(report.keyframes > 0);
  return state;
}

test("an implementation in Python agrees with the test vectors of the live protocol", async () => {
  assert.equal(await run(PYTHON, ["-B", pathOf("check_vectors.py"), `${ROOT}/tests/fixtures/live`]), "ok\n");
});

test(
  "a viewer in Python receives every chunk from a broadcast, and verifies that it is the source",
  { timeout: 300_000 },
  inRealTime(async (context) => {
    const source = await onAir(context);
    const { roles } = await watch(context, source, source.p2pPort);
    assert.deepEqual(roles, [2]);
  }),
);

test(
  "a viewer in Python receives every chunk through a viewer that relays",
  { timeout: 300_000 },
  inRealTime(async (context) => {
    const source = await onAir(context);
    const folder = await tempFolder("relaying-viewer");
    context.after(() => folder.remove());
    const port = await freePort();
    const [command, ...args] = engineCommand();
    const play = ["play", source.magnet, "--output", folder.file("relayed.ts")];
    const ports = ["--p2p-port", String(port), "--http-port", "0"];
    const relay = startProcess(command, [...args, ...play, ...ports], {
      cwd: ROOT,
      env: { SLUICE_P2P_HOST: "127.0.0.1", SLUICE_DATA_DIR: folder.path, XDG_CONFIG_HOME: folder.path },
    });
    context.after(() => relay.stop());
    await relay.line((each) => /behind live · 1 peer/.test(each));
    const { roles } = await watch(context, source, port);
    assert.deepEqual(roles, [0]);
  }),
);
