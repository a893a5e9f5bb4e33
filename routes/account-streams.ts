import { parseInfohash } from "../src/base/ids.ts";
import { trimOldest } from "../src/base/trim-oldest.ts";
import type { Engine } from "../src/engine/engine.ts";

/** Started streams that are remembered for each account; sessions that ended are among them, because a paused player brings its
 * session back. */
const MAX_REMEMBERED = 64;

/** A stream that an account started. */
interface AccountStream {
  /** The address of the client. */
  readonly client: string;
  isOpen(): boolean;
  /** True while a player reads it. */
  isPlayed(): boolean;
  end(): void;
}

/**
 * Counts the streams of each account and limits them.
 *
 * CHOICE(xtream-limit): a start above the limit succeeds and ends another stream of the account: the oldest one of the same client
 * address, else the oldest one.
 */
export class AccountStreams {
  readonly #engine: Pick<Engine, "session">;
  /** By account, then by the path of the session's URL, or by a number; oldest first. */
  readonly #streams = new Map<string, Map<string, AccountStream>>();
  #count = 0;

  constructor(engine: Pick<Engine, "session">) {
    this.#engine = engine;
  }

  /** Returns the number of streams that an account plays. */
  open(account: string): number {
    return this.#openOf(account).length;
  }

  /** Returns the number of streams of an account that a player reads; one whose player has left for a moment does not count. */
  played(account: string): number {
    return this.#openOf(account).filter((stream) => stream.isPlayed()).length;
  }

  /** Counts the stream that a response starts, ends others if they are more than `max` then, and returns the response. */
  add(account: string, client: string, max: number, response: Response): Response {
    const [, text = "", key = ""] =
      /^[^?]*\/([0-9a-f]{40})\/([0-9a-f]{32})/.exec(response.headers.get("location") ?? "") ?? [];
    const infohash = parseInfohash(text);
    if (infohash === undefined && response.body === null) return response;
    const streams = this.#streams.get(account) ?? new Map<string, AccountStream>();
    this.#streams.set(account, streams);
    const name = infohash === undefined ? String(++this.#count) : `${infohash}/${key}`;
    let counted = response;
    let stream: AccountStream;
    if (infohash === undefined) {
      const body = new EndableBody(response.body!);
      counted = new Response(body.stream, response);
      const isOpen = () => body.isOpen;
      stream = { client, isOpen, isPlayed: isOpen, end: () => body.end() };
    } else {
      const session = () => this.#engine.session(infohash, key);
      stream = {
        client,
        isOpen: () => session() !== undefined,
        isPlayed: () => session()?.isPlayed ?? false,
        end: () => session()?.stop(),
      };
    }
    streams.delete(name);
    streams.set(name, stream);
    if (max > 0) this.#limit(account, stream, max);
    trimOldest(streams, MAX_REMEMBERED);
    return counted;
  }

  #limit(account: string, newest: AccountStream, max: number): void {
    for (let open = this.#openOf(account); open.length > max; open = this.#openOf(account)) {
      const others = open.filter((stream) => stream !== newest);
      const ended = others.find(({ client }) => client === newest.client) ?? others[0];
      if (ended === undefined) return;
      ended.end();
      if (ended.isOpen()) return;
    }
  }

  #openOf(account: string): AccountStream[] {
    return [...(this.#streams.get(account)?.values() ?? [])].filter((stream) => stream.isOpen());
  }
}

/** A body that can be ended while it is read. */
class EndableBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #isOpen = true;

  constructor(body: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.#reader = body.getReader();
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: async (controller) => {
          const { done, value } = await this.#reader.read().catch((thrown: unknown) => {
            this.#isOpen = false;
            throw thrown;
          });
          if (!this.#isOpen) return;
          if (done) this.end();
          else controller.enqueue(value);
        },
        cancel: (reason) => {
          this.#isOpen = false;
          return this.#reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#controller?.close();
    this.#reader.cancel().catch(() => {});
  }
}
