import type { PeerAddress } from "../base/address.ts";
import type { Network } from "../base/network.ts";
import type { Ed25519Sign, Ed25519VerifierOf, Sha256 } from "../base/signature.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";
import type { StartWorker } from "./worker-contract.ts";

/** The services of the JavaScript runtime (Bun, Deno or Node). No other interface depends on which one runs. */
export interface Runtime {
  readonly name: "bun" | "deno" | "node";
  readonly version: string;
  readonly clock: Clock;
  readonly net: Net;
  readonly files: Files;
  readonly http: HttpClient;
  readonly surroundings: Surroundings;
  readonly startWorker: StartWorker;
  /** Reports that work other than traffic left about so many bytes of garbage, which a runtime may collect soon. */
  discarded(bytes: number): void;
  /** SHA-1, 20 bytes. Synchronous: hashing a piece costs less than passing it to a worker. */
  sha1(bytes: Uint8Array): Uint8Array;
  readonly sha256: Sha256;
  /** Throws unless the key has 32 bytes. Synchronous: a check takes about 50 µs, and a stream needs eight per second. */
  readonly ed25519Verifier: Ed25519VerifierOf;
  /** Derives an Ed25519 key pair from a 32-byte secret seed. */
  ed25519Key(seed: Uint8Array): { readonly publicKey: Uint8Array; readonly sign: Ed25519Sign };
  /** Cryptographically strong random bytes. */
  randomBytes(length: number): Uint8Array;
  /** AES-128 in Galois/counter mode (NIST SP 800-38D) with a 16-byte key. */
  aes128Gcm(key: Uint8Array): Aes128Gcm;
  /** Derives a key from a password (RFC 7914) without blocking the event loop. */
  scrypt(password: string, salt: Uint8Array, cost: ScryptCost): Promise<Uint8Array>;
  /** Serves a Fetch API handler; rejects with `port_busy` if the port is in use. */
  serve(handler: HttpHandler, options: ServeOptions): Promise<HttpListener>;
  /**
   * Opens a TLS connection without verifying the certificate: only for devices of the local network, whose certificates no authority has
   * signed. Calls `opened` after the handshake, or `closed` if it fails.
   */
  connectTls(address: PeerAddress, handlers: TcpHandlers, options: { readonly timeoutMs: number }): TcpSocket;
  /** Resolves a name to canonical IP literals; rejects if it has none. */
  lookup(name: string): Promise<string[]>;
  /** Takes a lock on a file in an existing folder; the lock ends with the process. Resolves to a function that releases
   * it, or to undefined if another process holds it. */
  lock(path: string): Promise<(() => void) | undefined>;
  /** Opens the durable records in a folder. Rejects with `bad_configuration` if another engine owns them. */
  openStore(options: StoreOptions): Promise<KeyValueStore>;
  /**
   * Yields a consistent state of all records as text for {@link restoreStore}, followed by `parts`; also while an engine
   * runs. Output before an error is not a valid backup.
   */
  backupStore(options: StoreOptions, parts: AsyncIterable<BackupPart>): AsyncIterable<Uint8Array>;
  /** Reads a backup to its end, and calls `onLine` for each record and part. Rejects with `bad_parameter` if it is damaged or incomplete. */
  readBackup(
    backup: AsyncIterable<Uint8Array>,
    onLine: (line: { readonly key: string; readonly value: string } | BackupPart) => void | Promise<void>,
  ): Promise<void>;
  /**
   * Replaces all records by a backup, atomically. Calls `backup` twice: to verify it (`bad_parameter` if it is damaged),
   * then to read it. Rejects with `bad_configuration` if an engine runs, or if the store has records and `overwrite` is
   * false.
   */
  restoreStore(
    options: StoreOptions,
    backup: () => AsyncIterable<Uint8Array>,
    overwrite: boolean,
    restorePart: (part: BackupPart) => Promise<void>,
  ): Promise<{ readonly records: number }>;
}

/** Options of a store. */
export interface StoreOptions {
  /** A folder for the store alone; created if it does not exist. */
  readonly folder: string;
  readonly kind: "sqlite" | "memory" | "redis";
  /** The server of a `redis` store, such as `redis://127.0.0.1:6379`. */
  readonly url?: string;
  /** False: this process owns the store, checks and repairs it. True: a tool, which may run while an engine owns it. */
  readonly shared: boolean;
  /** Called with each report of damage and repair. */
  readonly warn: (message: string) => void;
}

/** A part of a file in a backup. The parts of a file are consecutive. */
export interface BackupPart {
  /** Path relative to the data folder, with `/`. */
  readonly name: string;
  readonly base64: string;
  /** True for the last part of the file. */
  readonly isLast: boolean;
}

/** An authenticated cipher. A nonce has 12 bytes and must not be used twice. */
export interface Aes128Gcm {
  /** Returns the encrypted bytes, followed by the 16-byte tag. */
  seal(nonce: Uint8Array, additional: Uint8Array, plain: Uint8Array): Uint8Array;
  /** Returns the plain bytes; undefined if `sealed` or `additional` was changed. */
  open(nonce: Uint8Array, additional: Uint8Array, sealed: Uint8Array): Uint8Array | undefined;
}

/** Parameters of scrypt, which needs 128 · N · r bytes of memory. */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
  readonly keyBytes: number;
}

/** The networks that this machine is connected to. */
export interface Surroundings {
  /** This machine's addresses with their networks, read at each call. */
  networks(): readonly OwnNetwork[];
  /** The IPv4 address of the default gateway; `none` if there is none, undefined if the system does not report it. */
  gateway(): Promise<string | "none" | undefined>;
  /** Runs a command line from the settings. Resolves to its output; rejects if it fails, prints more than 64 KiB or takes
   * longer than `timeoutMs`. */
  run(commandLine: string, timeoutMs: number): Promise<string>;
}

/** An address of this machine with its network. */
export interface OwnNetwork extends Network {
  readonly interfaceName: string;
  readonly isLoopback: boolean;
  /** The `networkAddress` of this network in {@link UdpOptions}: its address, or `::%name`. */
  readonly multicastAddress: string;
}

export interface Clock {
  now(): Instant;
  unixSeconds(): UnixSeconds;
  /** Calls `run` once, at or after `at`; the returned function cancels it. Does not keep the process alive. */
  at(at: Instant, run: () => void): () => void;
}

// ---- sockets -----------------------------------------------------------------------------------------------------

export interface Net {
  /** Opens a TCP connection; calls `opened`, or `closed` if it fails. */
  connect(address: PeerAddress, handlers: TcpHandlers, options: ConnectOptions): TcpSocket;
  /** Listens on TCP; `accept` returns the handlers of each connection. A connection is reset before anything is allocated for it if
   * `admits` returns false for the canonical address of its peer. */
  listen(
    address: PeerAddress,
    accept: (socket: TcpSocket) => TcpHandlers,
    admits?: (host: string) => boolean,
  ): Promise<TcpListener>;
  bindUdp(address: PeerAddress, received: DatagramReceiver, options?: UdpOptions): Promise<UdpSocket>;
}

export interface ConnectOptions {
  readonly timeoutMs: number;
  /** The source address; the connection fails unless it belongs to this machine. The system chooses by default. */
  readonly localAddress?: string;
}

/**
 * Called for each datagram; `bytes` is valid only during the call. Responses go to `from`. If `from` stands for a name
 * that a proxy resolved (`net/confined`), `actual` is the resolved address.
 */
export type DatagramReceiver = (bytes: Uint8Array, from: PeerAddress, actual?: PeerAddress) => void;

/** Options of a UDP socket. */
export interface UdpOptions {
  /** Joins a multicast group; other programs on this machine may join the same one. */
  readonly multicast?: {
    readonly group: string;
    /** The address of this machine (IPv6: `::%name`) on the network to listen on; the system chooses by default. */
    readonly networkAddress?: string;
    /** Time to live of datagrams to the group, which are sent on the same network. */
    readonly hops?: number;
  };
  /** Requested size of the system's receive buffer; the system may provide less. */
  readonly receiveBufferBytes?: number;
}

export interface TcpHandlers {
  /** An outgoing connection is established. */
  opened?(): void;
  /** `bytes` is a view on the read buffer, valid only during the call. */
  received(bytes: Uint8Array): void;
  /** The kernel has taken all written bytes. */
  drained(): void;
  /** The connection has closed or could not be established; called exactly once. */
  closed(reason: string): void;
}

export interface TcpSocket {
  readonly remote: PeerAddress;
  /** Present on sockets that stand for a WebRTC data channel. */
  readonly transport?: "webrtc";
  /** Written bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** Takes ownership of `bytes`. Returns false if the caller should wait for `drained`. */
  write(bytes: Uint8Array): boolean;
  pause(): void;
  resume(): void;
  /** Closes immediately and drops unsent bytes. `closed` is still called. */
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

/** The file system. Paths are absolute and made by the engine (infohashes, numbers), never taken from peers. */
export interface Files {
  /**
   * Opens for positional reading and writing; creates the file and its folders. With `bypassesPageCache`, long aligned writes go
   * directly to the disk if the system supports it: for data that is rarely read again.
   */
  open(path: string, options?: { readonly bypassesPageCache?: boolean }): Promise<OpenFile>;
  /** Reads a whole file; undefined if it does not exist. Rejects if it is longer than `limitBytes`. */
  read(path: string, limitBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Reads a file in chunks of at most 64 KiB on demand; throws if it cannot be read. */
  parts(path: string): AsyncIterable<Uint8Array>;
  /** Replaces a file atomically: writes a temporary file, syncs and renames it. Durable when it resolves. */
  replace(path: string, bytes: Uint8Array): Promise<void>;
  remove(path: string): Promise<void>;
  /** The names in a folder; empty if it does not exist. */
  list(path: string): Promise<string[]>;
  /** Size and modification time; undefined if the file does not exist. */
  stat(path: string): Promise<FileFacts | undefined>;
  /** Free bytes on the disk that holds `path`; undefined if the system does not report them. */
  freeBytes(path: string): Promise<number | undefined>;
}

export interface FileFacts {
  /** In bytes. */
  readonly size: number;
  /** Unix time in milliseconds. */
  readonly modifiedMs: number;
  /** The nine POSIX permission bits; absent on systems without them. */
  readonly permissions?: number;
}

export interface OpenFile {
  /** Fills `into` with the bytes at offset `at`; rejects if the file is shorter. */
  read(at: number, into: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Writes all of `parts`, one after another, from offset `at` on; rejects with `disk_full` if the disk is full. At most 1,024 parts. */
  write(at: number, ...parts: readonly Uint8Array[]): Promise<void>;
  /** Drops the bytes after the first `bytes`. */
  truncate(bytes: number): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

// ---- durable records ---------------------------------------------------------------------------------------------

/**
 * Small durable records. A value is JSON of at most `MAX_VALUE_BYTES`; a commit sets and deletes at most
 * `MAX_COMMIT_KEYS` keys and `MAX_COMMIT_BYTES` (base/store-limits.ts). Keys are text of 1 to 512 characters. Throws
 * `RangeError` if a limit is exceeded, `TypeError` for values that are not JSON. One conformance suite tests every
 * implementation.
 */
export interface KeyValueStore {
  get(key: string): Promise<unknown>;
  /** Entries whose key starts with `prefix`, in byte order of the keys. Yields to the event loop between batches. */
  list(prefix: string): AsyncIterable<readonly [key: string, value: unknown]>;
  /**
   * Applies a change atomically; durable when it resolves. Resolves to false, without a change, if a `check` does not
   * hold. Rejects with `disk_full` if the disk is full; a rejected commit has changed nothing.
   */
  commit(change: KeyValueChange): Promise<boolean>;
  /** Throws `store_unavailable` if commits are refused now. Absent if the store has no server that may be away. */
  refuseChanges?(): void;
  /**
   * Calls `changed` with keys of this prefix that other processes have set or deleted; `get` and `list` already return the new values then. The
   * returned function ends this. Absent if no other process writes to the store while this one uses it.
   */
  watch?(prefix: string, changed: (keys: readonly string[]) => void): () => void;
  close(): Promise<void>;
}

export interface KeyValueChange {
  /** Keys with the values they must have, compared as JSON; undefined: the key must be absent. */
  readonly check?: readonly (readonly [key: string, value: unknown])[];
  readonly set?: readonly (readonly [key: string, value: unknown])[];
  readonly delete?: readonly string[];
}

// ---- HTTP --------------------------------------------------------------------------------------------------------

/** Where a request comes from: the socket's addresses, or the header of a trusted proxy (`routes/access-proxy.ts`). */
export interface RequestOrigin {
  readonly remote: PeerAddress;
  readonly local: PeerAddress;
  /** This machine's addresses with their networks; /24 and /64 are assumed if absent. */
  readonly networks?: readonly Network[];
  /** Additional networks from the settings whose addresses count as intranet. */
  readonly neighbours?: readonly Network[];
}

/** Handles a request. The request's `signal` fires if the client hangs up before the response begins; afterwards the
 * response body is cancelled instead. */
export type HttpHandler = (
  request: Request,
  origin: RequestOrigin,
  acceptWebSocket?: AcceptWebSocket,
) => Response | Promise<Response>;

/**
 * Passed to the handler of a WebSocket request (RFC 6455). To accept, the handler calls it and returns its response; any
 * other response refuses the request.
 */
export type AcceptWebSocket = (
  open: ((socket: TextSocket) => TextSocketHandlers) | ByteStreamOpener,
) => Response;

/** Accepts a WebSocket whose binary messages, joined, are a byte stream in each direction, as those of a TCP connection. */
export interface ByteStreamOpener {
  /** The address of the client, which is not that of the connection behind a proxy. */
  readonly remote: PeerAddress;
  open(socket: TcpSocket): TcpHandlers;
}

/** A WebSocket for short text messages. */
export interface TextSocket {
  /** Sends at most 65535 bytes; the connection is closed if the other side does not read. */
  send(text: string): void;
  close(): void;
}

export interface TextSocketHandlers {
  received(text: string): void;
  /** The connection has closed; called exactly once. */
  closed(): void;
}

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
  /** The descriptor of a listening socket that another program passed to this one; `host` and `port` then mean nothing. */
  readonly descriptor?: number | undefined;
  /** Connection limit. One in eight is reserved for this host; another device may hold half. A new connection beyond a
   * limit closes one that is idle or whose client does not read, or is refused if there is none. */
  readonly maxConnections: number;
}

export interface HttpListener {
  readonly address: PeerAddress;
  /** Closes all connections whose origin `mayStay` refuses, with the responses that they carry. */
  disconnect(mayStay: (origin: RequestOrigin) => boolean): void;
  /** Stops accepting, ends open responses, and resolves when the port is free. */
  close(): Promise<void>;
}

/** HTTP/1.1 client that connects to a given address. Does not follow redirects. */
export interface HttpClient {
  request(request: OutboundRequest): Promise<OutboundResponse>;
  /** Opens a WebSocket (RFC 6455) for text; rejects after the timeout or when the signal fires. `handlers` are not called
   * before it resolves. */
  openWebSocket(request: WebSocketRequest, handlers: TextSocketHandlers): Promise<TextSocket>;
}

/** Opens the connection for a request, if it is not a direct one (for example through a proxy). */
export type Dial = (handlers: TcpHandlers) => TcpSocket;

export interface WebSocketRequest {
  /** ws: or wss:, without credentials. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The IP literal to connect to, whatever host the URL names. */
  readonly connectTo: string;
  /** Overrides `connectTo`. */
  readonly dial?: Dial;
  /** Limit of the handshake. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface OutboundRequest {
  readonly url: URL;
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** The IP literal to connect to, whatever host the URL names. */
  readonly connectTo: string;
  /** Overrides `connectTo`. */
  readonly dial?: Dial;
  /** Limit of the whole exchange including the body. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface OutboundResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array>;
}
