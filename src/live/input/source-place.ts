import { addressScope, canonicalAddress, type PeerAddress } from "../../base/address.ts";
import { SluiceError } from "../../base/errors.ts";

/** A source of a broadcast. */
export type LivePlace =
  | { readonly kind: "http"; readonly url: string }
  | { readonly kind: "hls"; readonly url: string }
  | UdpPlace
  | RtmpPlace
  | SrtPlace
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "pipe" }
  | { readonly kind: "test-pattern" };

/** A local UDP port, or a multicast group. */
export interface UdpPlace {
  readonly kind: "udp";
  readonly bind: PeerAddress;
  /** The group to join. */
  readonly group?: string;
  /** The local address of the network on which the group is joined. */
  readonly networkAddress?: string;
}

/** An address of this machine to which a program publishes by RTMP, with the stream key. */
export interface RtmpPlace {
  readonly kind: "rtmp";
  readonly bind: PeerAddress;
  readonly app: string;
}

/** An SRT connection, which ffmpeg receives. */
export interface SrtPlace {
  readonly kind: "srt";
  /** The host can be a name if this machine connects to it. */
  readonly address: PeerAddress;
  /** A program connects to this address of this machine. Otherwise this machine connects to the address. */
  readonly isListener: boolean;
  readonly passphrase?: string;
  readonly streamId?: string;
}

/** Whether a program publishes to an address of this machine, with a stream key that the user learns after the start. */
export function isPublished(place: LivePlace): place is RtmpPlace | SrtPlace {
  return place.kind === "rtmp" || (place.kind === "srt" && place.isListener);
}

const RTMP_PORT = 1935;
const RTMP_APP = "live";

/** The supported sources, for error messages. */
const SUPPORTED =
  "an http or https URL, udp://address:port, rtmp://address:port/app (an address of this machine), srt://address:port, a file, or - for standard input (ffmpeg … -f mpegts - | sluice broadcast -)";

/** Parses the source that the user named: `udp://@239.1.1.1:1234`, `udp://0.0.0.0:1234`, `udp://@:1234`, the same with
 * `rtp://`; `?localaddr=` selects the network of a group; `rtmp://0.0.0.0:1935/live`; `srt://0.0.0.0:9000`. Throws `bad_parameter`. */
export function readLivePlace(text: string): LivePlace {
  if (text === "-") return { kind: "pipe" };
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return { kind: "file", path: text };
  if (scheme === "http" || scheme === "https") return readWebPlace(text);
  if (scheme === "udp" || scheme === "rtp") return readUdpPlace(text);
  if (scheme === "rtmp") return readRtmpPlace(text);
  if (scheme === "srt") return readSrtPlace(text);
  throw new SluiceError(
    "bad_parameter",
    `${scheme}: sources are not supported; expected ${SUPPORTED}. Use ffmpeg to read ${scheme} and pipe it in`,
  );
}

function readWebPlace(text: string): LivePlace {
  if (!URL.canParse(text)) throw new SluiceError("bad_parameter", `not a valid URL: ${text.slice(0, 200)}`);
  const isHls = /\.m3u8?$/i.test(new URL(text).pathname);
  return { kind: isHls ? "hls" : "http", url: text };
}

function readUdpPlace(text: string): UdpPlace {
  const match = /^(?:udp|rtp):\/\/@?(\[[^\]]*\]|[^:/?#[\]]*):(\d{1,5})\/?(?:\?([^#]*))?$/i.exec(text);
  const port = Number(match?.[2]);
  const name = match?.[1]?.replace(/^\[(.*)\]$/, "$1") ?? "";
  const host = name === "" ? "0.0.0.0" : canonicalAddress(name);
  if (!match || host === undefined || port < 1 || port > 65_535)
    throw new SluiceError(
      "bad_parameter",
      `expected udp://address:port, such as udp://@239.1.1.1:1234 or udp://0.0.0.0:1234, not ${text.slice(0, 200)}`,
    );
  if (addressScope(host) !== "multicast") return { kind: "udp", bind: { host, port } };
  const local = new URLSearchParams(match[3] ?? "").get("localaddr");
  const networkAddress = local === null ? undefined : canonicalAddress(local);
  if (local !== null && networkAddress === undefined)
    throw new SluiceError("bad_parameter", `localaddr: expected an address of this machine, not ${local}`);
  // Binding to the group itself would exclude packets of other senders to this port, but not every system supports
  // that; all support this.
  const bind = { host: host.includes(":") ? "::" : "0.0.0.0", port };
  return { kind: "udp", bind, group: host, ...(networkAddress && { networkAddress }) };
}

/** `rtmp://0.0.0.0`, with or without port and app. */
function readRtmpPlace(text: string): RtmpPlace {
  const match = /^rtmp:\/\/@?(\[[^\]]*\]|[^:/?#[\]]*)(?::(\d{1,5}))?(?:\/([\w-]{0,64}))?\/?$/i.exec(text);
  const port = Number(match?.[2] ?? RTMP_PORT);
  const name = match?.[1]?.replace(/^\[(.*)\]$/, "$1") ?? "";
  const host = name === "" ? "0.0.0.0" : canonicalAddress(name);
  if (!match || host === undefined || port < 1 || port > 65_535)
    throw new SluiceError(
      "bad_parameter",
      `expected rtmp://address:port/app with an address of this machine, such as rtmp://0.0.0.0:${RTMP_PORT}/${RTMP_APP}, not ${text.slice(0, 200)}; the stream key is made by Sluice`,
    );
  return { kind: "rtmp", bind: { host, port }, app: match[3] || RTMP_APP };
}

/** `srt://0.0.0.0:9000` receives, `srt://name:9000` connects; `?mode=`, `passphrase=` and `streamid=` as in ffmpeg and OBS. */
function readSrtPlace(text: string): SrtPlace {
  const match = /^srt:\/\/@?(\[[^\]]*\]|[\w.-]*):(\d{1,5})\/?(?:\?([^#]*))?$/i.exec(text);
  // Without the options: errors are logged, and the passphrase is among them.
  const fault = (expected: string) =>
    new SluiceError("bad_parameter", `${expected}; source: ${text.split("?", 1)[0]!.slice(0, 200)}`);
  const port = Number(match?.[2]);
  const name = match?.[1]?.replace(/^\[(.*)\]$/, "$1") || "0.0.0.0";
  const address = canonicalAddress(name);
  if (!match || port < 1 || port > 65_535 || (address === undefined && name.includes(":")))
    throw fault(
      "expected srt://address:port, such as srt://0.0.0.0:9000 to receive or srt://camera:9000 to connect",
    );
  const options = new URLSearchParams(match[3] ?? "");
  const isOwn = address !== undefined && addressScope(address) === "unspecified";
  const mode = options.get("mode") ?? (isOwn ? "listener" : "caller");
  const passphrase = options.get("passphrase") ?? undefined;
  const streamId = options.get("streamid") ?? undefined;
  if (mode !== "listener" && mode !== "caller") throw fault("mode: expected listener or caller");
  if (mode === "listener" && address === undefined)
    throw fault("mode=listener: expected an address of this machine");
  if (passphrase !== undefined && !/^[\x20-\x7e]{10,64}$/.test(passphrase))
    throw fault("passphrase: expected 10 to 64 characters");
  if (streamId !== undefined && !/^[\x20-\x7e]{1,512}$/.test(streamId))
    throw fault("streamid: expected 1 to 512 characters");
  return {
    kind: "srt",
    address: { host: address ?? name, port },
    isListener: mode === "listener",
    ...(passphrase !== undefined && { passphrase }),
    ...(streamId !== undefined && { streamId }),
  };
}
