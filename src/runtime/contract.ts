import type { PeerAddress } from "../base/address.ts";
import type { Network } from "../base/network.ts";
import type { Ed25519Sign, Ed25519VerifierOf, Sha256 } from "../base/signature.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";

/** Everything a runtime (Bun, Deno, Node) gives to the engine. Nothing else knows which one runs. */
export interface Runtime {
  readonly name: "bun" | "deno" | "node";
  readonly version: string;
  readonly clock: Clock;
  readonly net: Net;
  readonly files: Files;
  readonly http: HttpClient;
  readonly surroundings: Surroundings;
  /** 20 bytes. Synchronous: one call a finished piece costs less than handing it to a worker. */
  sha1(bytes: Uint8Array): Uint8Array;
  readonly sha256: Sha256;
  /** Throws where the 32 bytes are no key at all. Synchronous: a check costs some 50 µs, eight a second of a stream. */
  readonly ed25519Verifier: Ed25519VerifierOf;
  /** The Ed25519 key that follows from 32 secret bytes. */
  ed25519Key(seed: Uint8Array): { readonly publicKey: Uint8Array; readonly sign: Ed25519Sign };
  /** Cryptographically strong random bytes. */
  randomBytes(length: number): Uint8Array;
  /** A key out of a password (RFC 7914), made beside the event loop. */
  scrypt(password: string, salt: Uint8Array, cost: ScryptCost): Promise<Uint8Array>;
  /** Serves Fetch API handlers; rejects with `SluiceError("port_busy")` where the port is taken. */
  serve(handler: HttpHandler, options: ServeOptions): Promise<HttpListener>;
  /** Resolves a name to canonical IP literals; rejects where it has none. */
  lookup(name: string): Promise<string[]>;
  /** Takes a lock that ends with the process, on a file in a folder that is there; the returned function gives it back.
   * Undefined where another process holds it. */
  lock(path: string): Promise<(() => void) | undefined>;
  /** Opens the durable records in a folder. Rejects with `bad_configuration` where another engine owns them. */
  openStore(options: StoreOptions): Promise<KeyValueStore>;
  /**
   * All records as one moment had them, as text for {@link restoreStore}; beside a running engine too. `parts` follow
   * the records. What was read before an error is no backup.
   */
  backupStore(options: StoreOptions, parts: AsyncIterable<BackupPart>): AsyncIterable<Uint8Array>;
  /**
   * Puts a backup in the place of all records, whole or not at all. `backup` is read twice: first to see that it is
   * whole (`bad_parameter` where it is not), then to take it. Rejects with `bad_configuration` where an engine runs, and
   * where there are records already and `overwrite` is false.
   */
  restoreStore(
    options: StoreOptions,
    backup: () => AsyncIterable<Uint8Array>,
    overwrite: boolean,
    restorePart: (part: BackupPart) => Promise<void>,
  ): Promise<{ readonly records: number }>;
}

/** Which store, and where. */
export interface StoreOptions {
  /** A folder of its own; made where it is not there. */
  readonly folder: string;
  readonly kind: "sqlite" | "deno-kv" | "memory";
  /** False: this process owns the store, checks and repairs it. True: a tool, perhaps beside the engine that owns it. */
  readonly shared: boolean;
  /** Hears of damage that was found, and of what was done about it. */
  readonly warn: (message: string) => void;
}

/** A part of a file that is kept beside the records; parts of one file follow each other. */
export interface BackupPart {
  /** Below the data folder, with `/`. */
  readonly name: string;
  readonly base64: string;
  /** No other part of this file follows. */
  readonly isLast: boolean;
}

/** What scrypt shall cost: it takes 128 · N · r bytes of memory. */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
  readonly keyBytes: number;
}

/** What this machine is connected to. */
export interface Surroundings {
  /** Its addresses with the networks they are on, asked anew each time. */
  networks(): readonly OwnNetwork[];
  /** The IPv4 address of the router that leads to the Internet; `none` where there is none, undefined where the system
   * does not say. */
  gateway(): Promise<string | "none" | undefined>;
  /** What a command line of the user's own prints; rejects where it fails, prints too much or takes too long. */
  run(commandLine: string, timeoutMs: number): Promise<string>;
}

/** An address of ours, and the network it is on. */
export interface OwnNetwork extends Network {
  readonly interfaceName: string;
  readonly isLoopback: boolean;
  /** What {@link UdpOptions} calls this network: its address, or `::%name`. */
  readonly multicastAddress: string;
}

export interface Clock {
  now(): Instant;
  unixSeconds(): UnixSeconds;
  /** Calls `run` once, at `at` or soon after; the returned function cancels. Does not keep the process alive. */
  at(at: Instant, run: () => void): () => void;
}

// ---- sockets -----------------------------------------------------------------------------------------------------

export interface Net {
  /** Opens a TCP connection; the outcome comes to the handlers. */
  connect(address: PeerAddress, handlers: TcpHandlers, options: ConnectOptions): TcpSocket;
  /** Listens on TCP; each connection gets handlers of its own. */
  listen(address: PeerAddress, accept: (socket: TcpSocket) => TcpHandlers): Promise<TcpListener>;
  bindUdp(address: PeerAddress, received: DatagramReceiver, options?: UdpOptions): Promise<UdpSocket>;
}

export interface ConnectOptions {
  readonly timeoutMs: number;
  /** The address of ours that the connection leaves from; where it is none of ours, there is no connection. The system
   * chooses where it is not given. */
  readonly localAddress?: string;
}

/**
 * Hears of a datagram; the bytes are valid during the call only. `from` is where to answer. Where that address stands for a
 * name that somebody else looked up (`engine/reach/inside.ts`), `actual` is what the name was found to be.
 */
export type DatagramReceiver = (bytes: Uint8Array, from: PeerAddress, actual?: PeerAddress) => void;

/** What a UDP socket is for, where it is not one of the peer network. */
export interface UdpOptions {
  /** Hears what is sent to this group too; other programs of this machine may listen to the same. */
  readonly multicast?: {
    readonly group: string;
    /** The address of ours (for IPv6: `::%name`) whose network is listened to; the system chooses where it is not given. */
    readonly networkAddress?: string;
    /** What is sent to groups leaves by that network too, and passes so many routers less one. */
    readonly hops?: number;
  };
  /** How much the system shall keep while we are busy, in bytes; it may give less. */
  readonly receiveBufferBytes?: number;
}

export interface TcpHandlers {
  /** An outgoing connection stands. */
  opened?(): void;
  /** `bytes` is a view on the read buffer: valid only during the call. */
  received(bytes: Uint8Array): void;
  /** All that was written has gone to the kernel. */
  drained(): void;
  /** The connection is over (or never was); called exactly once. */
  closed(reason: string): void;
}

export interface TcpSocket {
  readonly remote: PeerAddress;
  /** Bytes written and not yet taken by the kernel. */
  readonly bufferedBytes: number;
  /** Writes; the socket owns `bytes` from now on. False where the caller should wait for `drained`. */
  write(bytes: Uint8Array): boolean;
  pause(): void;
  resume(): void;
  /** Closes at once, without waiting for what is unsent. `closed` is still called. */
  close(): void;
}

export interface TcpListener {
  readonly address: PeerAddress;
  close(): Promise<void>;
}

export interface UdpSocket {
  readonly address: PeerAddress;
  send(bytes: Uint8Array, to: PeerAddress): void;
  close(): void;
}

// ---- files -------------------------------------------------------------------------------------------------------

/** The disk. Paths are absolute; names come from us (infohash, numbers), never from peers. */
export interface Files {
  /** Opens for positional reading and writing, creating file and folders. */
  open(path: string): Promise<OpenFile>;
  /** The whole file, or undefined where there is none. Refuses more than `limitBytes`. */
  read(path: string, limitBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** A file of the user's, some 64 KiB at a time as they are asked for; throws where it cannot be read. */
  parts(path: string): AsyncIterable<Uint8Array>;
  /** Writes beside, syncs, renames over, syncs the folder: after it resolves the file is whole, whatever happens. */
  replace(path: string, bytes: Uint8Array): Promise<void>;
  remove(path: string): Promise<void>;
  /** The names in a folder; empty where there is none. */
  list(path: string): Promise<string[]>;
  /** Size in bytes and time of the last change, or undefined where there is no such file. */
  stat(path: string): Promise<FileFacts | undefined>;
  /** Free bytes on the disk that holds `path`, or undefined where the system does not say. */
  freeBytes(path: string): Promise<number | undefined>;
}

export interface FileFacts {
  readonly size: number;
  /** Wall-clock milliseconds. */
  readonly modifiedMs: number;
  /** Who may do what, as POSIX has it (the lowest nine bits); absent where the system has no such rights. */
  readonly rights?: number;
}

export interface OpenFile {
  /** Fills `into` with the bytes at `at`; rejects where the file is shorter. */
  read(at: number, into: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Writes all of `bytes` at `at`; rejects with `SluiceError("disk_full")` where the disk is full. */
  write(at: number, bytes: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

// ---- durable records ---------------------------------------------------------------------------------------------

/**
 * Small durable records. A value is JSON of at most `MAX_VALUE_BYTES`, a commit sets and deletes at most
 * `MAX_COMMIT_KEYS` keys and `MAX_COMMIT_BYTES` (base/store-limits.ts): more is a `RangeError`, what is not JSON a
 * `TypeError`. Keys are text of 1 to 512 characters. One conformance suite for every implementation.
 */
export interface KeyValueStore {
  get(key: string): Promise<unknown>;
  /** Entries whose key starts with `prefix`, in the order of their UTF-8 bytes, read in batches that yield to others. */
  list(prefix: string): AsyncIterable<readonly [key: string, value: unknown]>;
  /**
   * All or nothing, durable when it resolves. False (and nothing done) where a `check` no longer holds. Rejects with
   * `SluiceError("disk_full")` where the disk is full; a rejected commit has changed nothing.
   */
  commit(change: KeyValueChange): Promise<boolean>;
  close(): Promise<void>;
}

export interface KeyValueChange {
  /** Keys with the value they must still have (compared as JSON; undefined: absent). */
  readonly check?: readonly (readonly [key: string, value: unknown])[];
  readonly set?: readonly (readonly [key: string, value: unknown])[];
  readonly delete?: readonly string[];
}

// ---- HTTP --------------------------------------------------------------------------------------------------------

/** Who asks: the socket's own addresses, never a header (but for what a trusted proxy says: `routes/access-proxy.ts`). */
export interface RequestOrigin {
  readonly remote: PeerAddress;
  readonly local: PeerAddress;
  /** The addresses of this machine and their networks; where it is absent, /24 and /64 are taken. */
  readonly networks?: readonly Network[];
  /** Further networks whose addresses count as neighbours, from the settings. */
  readonly neighbours?: readonly Network[];
}

/** The request's `signal` fires when the asker hangs up before the answer has begun, and never after; a body that is
 * being sent hears of it by `cancel`. */
export type HttpHandler = (
  request: Request,
  origin: RequestOrigin,
  acceptWebSocket?: AcceptWebSocket,
) => Response | Promise<Response>;

/**
 * Given with requests that ask to become a WebSocket (RFC 6455). The handler that agrees calls it and answers with the
 * response it returns; any other response refuses.
 */
export type AcceptWebSocket = (open: (socket: TextSocket) => TextSocketHandlers) => Response;

/** A WebSocket that carries text, a message at a time; short ones only. */
export interface TextSocket {
  /** Sends at most 65535 bytes; a page that does not read what it is sent loses the connection. */
  send(text: string): void;
  close(): void;
}

export interface TextSocketHandlers {
  received(text: string): void;
  /** The connection is over; called exactly once. */
  closed(): void;
}

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
  /** At most this many connections at once. For a further one the longest idle one goes; it is refused where none is. */
  readonly maxConnections: number;
}

export interface HttpListener {
  readonly address: PeerAddress;
  /** Stops accepting, ends open responses, and resolves when the port is free. */
  close(): Promise<void>;
}

/** HTTP/1.1 exchanges with addresses that have been checked already. Redirects are not followed here. */
export interface HttpClient {
  request(request: OutboundRequest): Promise<OutboundResponse>;
  /** Opens a WebSocket (RFC 6455) for text. Rejects where it does not stand within the time, or as the signal says. */
  openWebSocket(request: WebSocketRequest, handlers: TextSocketHandlers): Promise<TextSocket>;
}

/** Makes the connection that an exchange goes over, where it is not a direct one; told as TCP's handlers are. */
export type Dial = (handlers: TcpHandlers) => TcpSocket;

/** `handlers` hear of nothing before the socket stands. */
export interface WebSocketRequest {
  /** ws: or wss:, without credentials. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The IP literal to connect to, whatever the URL's name says. */
  readonly connectTo: string;
  /** Goes before `connectTo`. */
  readonly dial?: Dial;
  /** Until it stands. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface OutboundRequest {
  readonly url: URL;
  readonly method: "GET" | "HEAD" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** The IP literal to connect to, whatever the URL's name says. */
  readonly connectTo: string;
  /** Goes before `connectTo`. */
  readonly dial?: Dial;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface OutboundResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array>;
}
