import { SluiceError } from "../base/errors.ts";

/** Maximum length of a password, in bytes. */
const MAX_SECRET_BYTES = 4096;

/** Standard input, and where prompts are written. */
export interface SecretInput {
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
}

/**
 * Reads a secret: typed without echo on a terminal, otherwise the first line of standard input. It is never an argument,
 * because other users of the machine can see arguments.
 */
export function readSecret(prompt: string, { stdin, stderr }: SecretInput): Promise<string> {
  return stdin.isTTY === true ? typed(prompt, stdin, stderr) : firstLine(stdin);
}

/** Returns standard input as a stream that reads only on demand. Call it once. */
export function pipedIn(stdin: NodeJS.ReadStream): ReadableStream<Uint8Array> {
  const chunks = stdin[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        // The iterator's return() would wait for the pending read, possibly forever.
        stdin.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

async function firstLine(stdin: NodeJS.ReadStream): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes("\n") || text.length > MAX_SECRET_BYTES) break;
  }
  const line = text.split("\n")[0]!.replace(/\r$/, "");
  if (line.length > MAX_SECRET_BYTES)
    throw new SluiceError("bad_parameter", `expected a line of at most ${MAX_SECRET_BYTES} bytes`);
  return line;
}

async function typed(prompt: string, stdin: NodeJS.ReadStream, stderr: NodeJS.WriteStream): Promise<string> {
  stderr.write(prompt);
  stdin.setRawMode(true);
  try {
    return await typedLine(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
}

function typedLine(stdin: NodeJS.ReadStream): Promise<string> {
  const decoder = new TextDecoder();
  const keys: string[] = [];
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      stdin.off("data", received);
      stdin.off("end", ended);
      settle();
    };
    const ended = () => end(() => resolve(keys.join("")));
    const received = (bytes: Uint8Array) => {
      for (const key of decoder.decode(bytes, { stream: true })) {
        if (key === "\r" || key === "\n" || key === "\x04") return ended();
        if (key === "\x03") return end(() => reject(new SluiceError("cancelled", "nothing was changed")));
        if (key === "\x7f" || key === "\b") keys.pop();
        else if (key === "\x15") keys.length = 0;
        else if (key >= " " && keys.length < MAX_SECRET_BYTES) keys.push(key);
      }
    };
    stdin.on("data", received);
    stdin.once("end", ended);
    stdin.resume();
  });
}
