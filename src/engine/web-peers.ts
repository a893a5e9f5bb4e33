import { addressScope, canonicalAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { AcquireOptions, TransferLease } from "../playback/contract.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { ContentSelector, LiveControl, Transfer, Transfers } from "../transfer/contract.ts";

/** WebSocket trackers that a page uses. */
const MAX_TRACKERS = 3;

/**
 * Returns whether pages may connect to a tracker that a broadcaster names: it runs on the same host as the engine, or has a public name or
 * address and a certificate. A page must not connect to devices of its visitor's network.
 */
function mayContact(tracker: string, host: string): boolean {
  if (!/^wss?:/i.test(tracker) || !URL.canParse(tracker)) return false;
  const { protocol, hostname } = new URL(tracker);
  if (hostname === host) return true;
  const address = canonicalAddress(hostname.replace(/^\[|\]$/g, ""));
  if (address !== undefined) return protocol === "wss:" && addressScope(address) === "global";
  return protocol === "wss:" && /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(hostname) && !LOCAL_NAME.test(hostname);
}

/** Names that no public name server resolves. */
const LOCAL_NAME = /\.(?:local|localhost|internal|lan|home|arpa)$/;

/** Dependencies of {@link WebPeers}. */
interface WebPeersDependencies {
  readonly transfers: Pick<Transfers, "accept">;
  readonly acquire: (selector: ContentSelector, options?: AcquireOptions) => Promise<TransferLease>;
}

/** Lets pages take part in the swarms of live streams as peers (docs/design/browser-peers.md). */
export class WebPeers {
  readonly #dependencies: WebPeersDependencies;

  constructor(dependencies: WebPeersDependencies) {
    this.#dependencies = dependencies;
  }

  /** Opens a live stream, and returns its transport file. Rejects with `SluiceError`; with `unsupported_content` if the content is not a
   * live stream. */
  transportFile(infohash: Infohash, options?: AcquireOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#open(infohash, options, (_, live) => live.content.file.bytes.slice());
  }

  /** Opens a live stream, and returns its name. Rejects as {@link transportFile} does. */
  title(infohash: Infohash, options?: AcquireOptions): Promise<string> {
    return this.#open(infohash, options, ({ name }) => name);
  }

  /**
   * Opens a live stream, and returns the WebSocket trackers by which its pages find those of other engines. `host` is the name by which
   * pages know this engine. Rejects as {@link transportFile} does.
   */
  trackers(infohash: Infohash, host: string, options?: AcquireOptions): Promise<readonly string[]> {
    return this.#open(infohash, options, (_, { content }) =>
      content.file.trackers
        .flat()
        .filter((url) => mayContact(url, host))
        .slice(0, MAX_TRACKERS),
    );
  }

  async #open<T>(
    infohash: Infohash,
    options: AcquireOptions = {},
    read: (transfer: Transfer, live: LiveControl) => T,
  ): Promise<T> {
    const lease = await this.#dependencies.acquire({ kind: "infohash", infohash }, options);
    try {
      const { live } = lease.transfer;
      if (live) return read(lease.transfer, live);
      throw new SluiceError("unsupported_content", "this content is not a live stream");
    } finally {
      lease.release();
    }
  }

  /** Takes over the connection of a page to the swarm of a stream that is open, and keeps the stream open until the page leaves. */
  accept(infohash: Infohash, socket: TcpSocket, options?: Pick<AcquireOptions, "isForeign">): TcpHandlers {
    const { transfers, acquire } = this.#dependencies;
    let release: (() => void) | undefined = () => {};
    void acquire({ kind: "infohash", infohash }, options).then(
      (lease) => {
        if (release) release = lease.release;
        else lease.release();
      },
      () => socket.close(),
    );
    const handlers = transfers.accept(infohash, socket);
    return {
      ...handlers,
      closed(reason) {
        release?.();
        release = undefined;
        handlers.closed(reason);
      },
    };
  }
}
