import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";

/** What a stage of a remuxer does with its input. It may keep state between the calls. */
interface Stage<Input, Output> {
  /** Takes one input and returns the outputs that are complete now, together about as large as the input. */
  transform(input: Input): readonly Output[] | Promise<readonly Output[]>;
  /** Returns the rest of the output after the last input. */
  flush?(): readonly Output[] | Promise<readonly Output[]>;
  /** Returns true if no more input is needed; asked after each input. The source of the input is then cancelled. */
  isDone?(): boolean;
}

/**
 * A stage of the way from the bytes of a file to a player: `pieces.pipeThrough(remuxer)`. It works on batches of at least 64 KiB,
 * because each chunk of a stream has a fixed cost. It makes nothing before the player has read the last output, so a stage holds one
 * input and its output while the player does not read. Errors of parsers become `SluiceError("broken_media")`.
 */
export class Remuxer<Input, Output> extends TransformStream<Input, Output> {
  constructor(stage: Stage<Input, Output>) {
    const deliver = (
      outputs: readonly Output[] | undefined,
      controller: TransformStreamDefaultController<Output>,
    ) => {
      for (const output of outputs ?? []) controller.enqueue(output);
    };
    super(
      {
        async transform(input, controller) {
          try {
            const outputs = stage.transform(input);
            deliver(outputs instanceof Promise ? await outputs : outputs, controller);
            if (!stage.isDone?.()) return;
            deliver(await stage.flush?.(), controller);
            controller.terminate();
          } catch (error) {
            throw asMediaError(error);
          }
        },
        async flush(controller) {
          try {
            deliver(await stage.flush?.(), controller);
          } catch (error) {
            throw asMediaError(error);
          }
        },
      },
      // One input waits while the previous output is read, and nothing is made before it is read.
      { highWaterMark: 1 },
      { highWaterMark: 0 },
    );
  }
}

/** Connects two stages: the input of the first, the output of the second. */
export function connect<Input, Between, Output>(
  first: ReadableWritablePair<Between, Input>,
  second: ReadableWritablePair<Output, Between>,
): ReadableWritablePair<Output, Input> {
  return { writable: first.writable, readable: first.readable.pipeThrough(second) };
}

/** Names of errors that say nothing about the media. */
const NOT_MEDIA_ERRORS = new Set(["AbortError", "ReferenceError"]);

/** Maps errors of parsers and of mediabunny to `SluiceError("broken_media")`; other errors pass unchanged. */
export function asMediaError(error: unknown): unknown {
  if (error instanceof SluiceError || (error instanceof Error && error.name === "BugError")) return error;
  if (!(error instanceof DecodeError || isLibraryError(error))) return error;
  return new SluiceError("broken_media", `the media file is invalid: ${messageOf(error)}`, { cause: error });
}

/** Errors of mediabunny have no class of their own. */
function isLibraryError(error: unknown): boolean {
  return error instanceof Error && !("code" in error) && !NOT_MEDIA_ERRORS.has(error.name);
}
