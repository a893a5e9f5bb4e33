import { SluiceError } from "../base/errors.ts";

/** Longer than any password. */
const MAX_BYTES = 4096;

/** Where a secret is typed, or comes through a pipe. */
export interface SecretInput {
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
}

/**
 * One secret: typed without being shown where somebody sits at a terminal, else the first line of standard input. It is
 * never an argument, which other users of the machine could see.
 */
export function readSecret(prompt: string, { stdin, stderr }: SecretInput): Promise<string> {
  return stdin.isTTY === true ? typed(prompt, stdin, stderr) : firstLine(stdin);
}

async function firstLine(stdin: NodeJS.ReadStream): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes("\n") || text.length > MAX_BYTES) break;
  }
  const line = text.split("\n")[0]!.replace(/\r$/, "");
  if (line.length > MAX_BYTES)
    throw new SluiceError("bad_parameter", `expected a line of at most ${MAX_BYTES} bytes`);
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
        else if (key >= " " && keys.length < MAX_BYTES) keys.push(key);
      }
    };
    stdin.on("data", received);
    stdin.once("end", ended);
    stdin.resume();
  });
}
