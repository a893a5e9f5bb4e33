import {
  CipherContext,
  DtlsClient,
  DtlsServer,
  type DtlsSocket,
  HashAlgorithm,
  NamedCurveAlgorithm,
  SignatureAlgorithm,
} from "werift";
import { equalBytes, readU16 } from "../../base/bytes.ts";
import { messageOf } from "../../base/errors.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { CONTENT, DtlsRecords, RECORD_HEADER_BYTES } from "./dtls-records.ts";

/** The certificate of this engine, created at each start. */
export interface DtlsCertificate {
  readonly certPem: string;
  readonly keyPem: string;
  /** SHA-256 of the certificate; 32 bytes. */
  readonly fingerprint: Uint8Array;
}

export interface DtlsOptions {
  readonly isClient: boolean;
  readonly certificate: DtlsCertificate;
  /** SHA-256 of the peer's certificate, from its description. */
  readonly fingerprint: Uint8Array;
  readonly runtime: Pick<Runtime, "sha256" | "aes128Gcm">;
  /** Sends a datagram; takes ownership. */
  send(bytes: Uint8Array): void;
  connected(): void;
  /** `bytes` is valid only during the call. */
  received(bytes: Uint8Array): void;
  /** The connection has ended or was not established; may be called several times. */
  failed(reason: string): void;
}

/** The shared port is not werift's. */
const NO_ADDRESS = { address: "", family: "", port: 0 };
/** ECDSA with P-256 and SHA-256, which every browser supports. */
const SIGNATURE = { hash: HashAlgorithm.sha256_4, signature: SignatureAlgorithm.ecdsa_3 };
/** A handshake has about 2 KiB; more is a peer that makes us buffer fragments. */
const MAX_HANDSHAKE_BYTES = 64 * 1024;
const MAX_RECORDS = 32;
const MAX_EARLY = 8;
/** HelloRequest, ClientHello, ServerHello and HelloVerifyRequest (RFC 6347 4.3.2). */
const MAX_HELLO_TYPE = 3;
/** Bytes of a nonce that are not sent. */
const SALT_BYTES = 4;
/** Sequence numbers that are left to werift: no number may be used twice with one key. */
const RESERVED_RECORDS = 1_000;

/** Makes a certificate; takes a few milliseconds. */
export async function makeCertificate(sha256: Sha256): Promise<DtlsCertificate> {
  const { certPem, keyPem } = await CipherContext.createSelfSignedCertificateWithKey(
    SIGNATURE,
    NamedCurveAlgorithm.secp256r1_23,
  );
  const base64 = certPem.replace(/-----[^-]+-----/g, "").replace(/\s/g, "");
  const fingerprint = sha256(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
  return { certPem, keyPem, fingerprint };
}

/**
 * DTLS 1.2 over datagrams, by werift. Limits that werift lacks are added here: of the bytes of a handshake, and against records in
 * plain text after it.
 */
export class DtlsLink {
  readonly #options: DtlsOptions;
  readonly #socket: DtlsSocket;
  readonly #transport: { onData: (data: Buffer, from: readonly [string, number]) => void };
  #handshakeBytes = 0;
  /** Records that arrived before. */
  readonly #early: Uint8Array[] = [];
  /** Undefined until the connection is established. */
  #records: DtlsRecords | undefined;
  #isClosed = false;

  constructor(options: DtlsOptions) {
    this.#options = options;
    const { certificate, isClient } = options;
    const transport = {
      type: "udp",
      closed: false,
      address: NO_ADDRESS,
      // werift sets it.
      onData: (_data: Buffer, _from: readonly [string, number]) => {},
      send: async (bytes: Uint8Array) => {
        if (!this.#isClosed) options.send(bytes);
      },
      close: async () => {},
    };
    this.#transport = transport;
    const socketOptions = {
      transport,
      cert: certificate.certPem,
      key: certificate.keyPem,
      signatureHash: SIGNATURE,
      extendedMasterSecret: true,
      certificateRequest: true,
    };
    const socket = isClient ? new DtlsClient(socketOptions) : new DtlsServer(socketOptions);
    this.#socket = socket;
    socket.onConnect.subscribe(() => this.#connected());
    socket.onClose.subscribe(() => this.#fail("closed by the peer"));
    socket.onError.subscribe((error) => this.#fail(messageOf(error)));
    if (socket instanceof DtlsClient) socket.connect().catch((error) => this.#fail(messageOf(error)));
  }

  /** Takes a datagram of the peer. */
  datagram(bytes: Uint8Array): void {
    const parts = this.#isClosed ? [] : recordsOf(bytes);
    if (!this.#records) {
      this.#handshakeBytes += bytes.length;
      if (this.#handshakeBytes > MAX_HANDSHAKE_BYTES) this.#fail("the handshake is too long");
    }
    for (const record of parts) {
      if (this.#isClosed) return;
      if (this.#records && record[0] === CONTENT.applicationData) {
        const plain = this.#records.open(record);
        if (plain) this.#options.received(plain);
      } else if (!this.#records && record[0] === CONTENT.applicationData) {
        // The peer is connected already. These are its first SCTP packets, which it would repeat after a second.
        if (this.#early.length < MAX_EARLY) this.#early.push(record.slice());
      } else if (!this.#records || isAllowedLater(record)) this.#passOn(record);
    }
  }

  /** Encrypts and sends `bytes`. */
  send(bytes: Uint8Array): void {
    if (this.#records && !this.#isClosed) this.#options.send(this.#records.seal(bytes));
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Passes a record of the handshake, or an alert, to werift. */
  #passOn(record: Uint8Array): void {
    try {
      this.#transport.onData(Buffer.from(record), ["", 0]);
    } catch (error) {
      // Malformed datagrams are ignored (RFC 6347 4.1.2.7): anyone can send them.
      if (!(error instanceof RangeError)) this.#fail(messageOf(error));
    }
  }

  #connected(): void {
    if (this.#records || this.#isClosed) return;
    const { runtime, fingerprint, isClient, connected } = this.#options;
    const { remoteCertificate: certificate, cipher, dtls } = this.#socket;
    if (!certificate || !equalBytes(runtime.sha256(certificate), fingerprint)) {
      this.#fail("the certificate is not that of the description");
      return;
    }
    const { clientWriteKey, clientNonce, serverWriteKey, serverNonce, blockAlgorithm } = cipher.cipher;
    if (
      !clientWriteKey ||
      !clientNonce ||
      !serverWriteKey ||
      !serverNonce ||
      blockAlgorithm !== "aes-128-gcm"
    ) {
      this.#fail("the cipher is not AES-128-GCM");
      return;
    }
    const keysOf = (key: Uint8Array, nonce: Uint8Array) => ({
      cipher: runtime.aes128Gcm(key),
      salt: nonce.slice(0, SALT_BYTES),
    });
    const client = keysOf(clientWriteKey, clientNonce);
    const server = keysOf(serverWriteKey, serverNonce);
    const [sending, receiving] = isClient ? [client, server] : [server, client];
    // werift keeps numbers for a repeated last flight.
    this.#records = new DtlsRecords(sending, receiving, dtls.recordSequenceNumber + RESERVED_RECORDS);
    connected();
    for (const record of this.#early.splice(0)) this.datagram(record);
  }

  #fail(reason: string): void {
    if (this.#isClosed) return;
    this.close();
    this.#options.failed(reason);
  }
}

/** Splits a datagram into records; empty if it is malformed. */
function recordsOf(bytes: Uint8Array): Uint8Array[] {
  const records: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at + RECORD_HEADER_BYTES > bytes.length || records.length >= MAX_RECORDS) return [];
    const end = at + RECORD_HEADER_BYTES + readU16(bytes, at + 11);
    if (end > bytes.length || readU16(bytes, at + 3) > 1) return [];
    records.push(bytes.subarray(at, end));
    at = end;
  }
  return records;
}

/**
 * Whether werift may see a record of an established connection: an encrypted one, or the last flight, which the peer repeats if the answer
 * was lost. A hello in plain text would replace the keys.
 */
function isAllowedLater(record: Uint8Array): boolean {
  if (readU16(record, 3) > 0 || record[0] === CONTENT.changeCipher) return true;
  return record[0] === CONTENT.handshake && record[RECORD_HEADER_BYTES]! > MAX_HELLO_TYPE;
}
