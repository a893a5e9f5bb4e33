import { fileURLToPath } from "node:url";
import { PYTHON } from "./libtorrent.ts";
import { type RunningProcess, startProcess } from "./process.ts";

const SCRIPT = fileURLToPath(new URL("../interop/live/viewer.py", import.meta.url));

/** What the viewer in Python prints every second. */
export interface PythonViewerState {
  /** Chunks that fit their signed header. */
  readonly chunks: number;
  readonly pieces: number;
  readonly missed: number;
  readonly disconnected: number;
  /** The role that each neighbour has proved; 2 is the source. */
  readonly roles: readonly number[];
}

/** Starts the viewer in Python, which was written from docs/live-protocol.md alone. It writes the stream to `output`, and connects to
 * `ports` of this machine. */
export function startPythonViewer(
  transportFile: string,
  output: string,
  ports: readonly number[],
): RunningProcess {
  const peers = ports.map((port) => `127.0.0.1:${port}`);
  return startProcess(PYTHON, ["-B", SCRIPT, transportFile, output, ...peers]);
}

/** The state that a line of the viewer's output contains; undefined if it is another line. */
export function pythonViewerState(line: string): PythonViewerState | undefined {
  return line.startsWith('{"chunks"') ? (JSON.parse(line) as PythonViewerState) : undefined;
}
