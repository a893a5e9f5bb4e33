import { SILENT_LOG } from "../../src/base/log.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { OutboundRequest } from "../../src/runtime/contract.ts";
import type { WebContent } from "../../src/transfer/contract.ts";
import { WebClient } from "../../src/web-content/web-client.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** The response to a request. */
export interface WebAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The chunks of the body; an error breaks the connection, undefined stalls it. */
  readonly body?: Iterable<Uint8Array | Error | undefined>;
}

/** A web server without a network. The test controls its timing; it counts pulled chunks and cancelled bodies. */
export class FakeWebServer {
  readonly clock = new FakeClock();
  readonly asked: OutboundRequest[] = [];
  answer: (request: OutboundRequest) => WebAnswer = () => ({ status: 404 });
  pulled = 0;
  open = 0;
  readonly client: WebClient;

  constructor(content: Partial<WebContent> = {}) {
    const outbound = createOutbound(
      {
        clock: this.clock,
        lookup: async () => ["93.184.216.34"],
        http: {
          request: async (request) => {
            this.asked.push(request);
            const { status = 200, headers = {}, body = [] } = this.answer(request);
            return { status, headers: new Headers(headers), body: this.#body(body) };
          },
        },
      },
      SILENT_LOG,
    );
    this.client = new WebClient({ clock: this.clock, outbound, log: SILENT_LOG }, someContent(content));
  }

  #body(chunks: Iterable<Uint8Array | Error | undefined>): ReadableStream<Uint8Array> {
    const rest = chunks[Symbol.iterator]();
    this.open++;
    let isOver = false;
    const close = () => {
      if (!isOver) this.open--;
      isOver = true;
    };
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          this.pulled++;
          const { done, value } = rest.next();
          if (!done && value === undefined) return;
          if (!done && !(value instanceof Error)) return controller.enqueue(value);
          close();
          if (done) controller.close();
          else controller.error(value);
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    );
  }
}

/** Content on that server. */
export function someContent(changes: Partial<WebContent> = {}): WebContent {
  return {
    url: "http://a.example/film.mp4",
    allowPrivate: false,
    kind: "file",
    name: "film.mp4",
    mime: "video/mp4",
    size: 3_000_000,
    validator: '"1"',
    ...changes,
  };
}
