import { spawn } from "node:child_process";
import { once } from "node:events";
import { onAbort } from "../async/abort.ts";
import { concatBytes } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { RunEncoder } from "../live/input/source-feed.ts";
import type { RunFfmpeg } from "../remux/codecs/ffmpeg-codecs.ts";
import { findProgram } from "./players.ts";

/** A segment of 30 s with eight channels; more is a fault. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** A line for each frame, of up to 40 s in frames of 40 samples. */
const MAX_MESSAGES_BYTES = 4 * 1024 * 1024;
/** A segment takes well below a second. A process that hangs must not keep its place. */
const TIMEOUT_MS = 120_000;

/** Returns a function that runs the program ffmpeg, for renditions and SRT. Rejects with `bad_configuration` if it is missing. */
export async function openEncoder(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<RunEncoder> {
  const program = await findProgram(environment, "ffmpeg");
  if (program === undefined)
    throw new SluiceError(
      "bad_configuration",
      "cannot find the program ffmpeg, which renditions and srt:// sources need; install it",
    );
  return (args, input, signal) => runEncoder(program, [...args, "pipe:1"], input, signal);
}

/** Finds ffmpeg on this machine. Rejects with `bad_configuration` if it is missing. */
export async function openFfmpeg(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<RunFfmpeg> {
  const program = await findProgram(environment, "ffmpeg");
  if (program === undefined)
    throw new SluiceError(
      "bad_configuration",
      "--transcoder ffmpeg: cannot find the program ffmpeg. Install it, or use --transcoder builtin",
    );
  return (args, input, signal) => runFfmpeg(program, args, input, signal);
}

const runFfmpeg = (program: string, ...[args, input, signal]: Parameters<RunFfmpeg>): ReturnType<RunFfmpeg> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const child = spawn(program, [...args], { stdio: "pipe" });
    let problem: unknown;
    const stop = (reason: unknown) => {
      problem ??= reason;
      child.kill("SIGKILL");
    };
    const release = onAbort(signal, () => stop(signal.reason));
    const timer = setTimeout(() => stop(failed("it takes too long")), TIMEOUT_MS);
    const output = collect(child.stdout, MAX_OUTPUT_BYTES, stop);
    const messages = collect(child.stderr, MAX_MESSAGES_BYTES, stop);
    const settle = (settled: () => void) => {
      clearTimeout(timer);
      release();
      settled();
    };
    // ffmpeg stops reading after an error; its exit status tells.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.once("error", (error) => settle(() => reject(failed(messageOf(error)))));
    child.once("close", (code) =>
      settle(() => {
        const text = new TextDecoder().decode(concatBytes(messages));
        if (problem !== undefined) reject(problem);
        else if (code !== 0) reject(failed(text.trim().slice(0, 200) || `exit status ${code}`));
        else resolve({ output: concatBytes(output), messages: text });
      }),
    );
  });

/** The last message of an encoder is kept for the error. */
const MESSAGE_BYTES = 2000;

function runEncoder(
  program: string,
  ...[args, input, signal]: Parameters<RunEncoder>
): ReadableStream<Uint8Array> {
  const child = spawn(program, [...args], { stdio: "pipe" });
  const output = child.stdout[Symbol.asyncIterator]();
  const source = input.getReader();
  let message = "";
  let problem: unknown;
  const stop = () => void child.kill("SIGKILL");
  const release = onAbort(signal, stop);
  child.stderr.on("data", (bytes: Uint8Array) => {
    message = (message + new TextDecoder().decode(bytes)).slice(-MESSAGE_BYTES);
  });
  // ffmpeg stops reading after an error; its exit status tells.
  child.stdin.on("error", () => {});
  const exit = new Promise<number | null>((resolve) => {
    child.once("error", (error) => {
      problem = error;
      resolve(null);
    });
    child.once("close", resolve);
  }).finally(() => {
    release();
    source.cancel().catch(() => {}); // The stream is no longer needed.
  });
  const feed = async () => {
    for (let read = await source.read(); !read.done; read = await source.read())
      if (!child.stdin.write(read.value)) await Promise.race([once(child.stdin, "drain"), exit]);
    child.stdin.end();
  };
  feed().catch(stop);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await output.next();
        if (!done) return controller.enqueue(value as Uint8Array);
        const code = await exit;
        if (problem !== undefined) throw failed(messageOf(problem));
        if (code !== 0) throw failed(message.trim().slice(0, 200) || `exit status ${code}`);
        controller.close();
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
}

function collect(
  stream: NodeJS.ReadableStream,
  limitBytes: number,
  stop: (reason: unknown) => void,
): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > limitBytes) stop(failed(`it wrote more than ${limitBytes} bytes`));
    else chunks.push(chunk);
  });
  return chunks;
}

function failed(why: string): SluiceError {
  return new SluiceError("unsupported_codec", `ffmpeg failed: ${why}`);
}
