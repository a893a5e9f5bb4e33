import type { PeerAddress } from "../../base/address.ts";
import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { SIGNATURE_BYTES } from "../../base/signature.ts";
import { type BencodeView, viewBencode } from "../bencode-view.ts";
import { type AddressFamily, decodeCompactPeers } from "../compact-peers.ts";
import { ITEM_KEY_BYTES, MAX_ITEM_BYTES, MAX_SALT_BYTES } from "./item.ts";
import type { DhtItem, KrpcFailure, KrpcMessage, KrpcQuery, KrpcReply, KrpcRequest, Want } from "./krpc.ts";
import { decodeCompactNodes } from "./krpc-nodes.ts";
import { DHT_ID_BYTES } from "./node-id.ts";

/** Longer datagrams are refused. The longest valid one (an item of 1,000 bytes, key, signature, nodes of both families) is below
 * 1,900 bytes. */
const MAX_KRPC_BYTES = 2048;
/** Limits of the bencode reader: a response has at most about 100 peers, and an item can be any bencoded value. */
const LIMITS = { maxTokens: 1024, maxDepth: 100 };
/** Clients use transaction ids of 2 to 8 bytes. They are limited because a response repeats the id. */
const MAX_TRANSACTION_BYTES = 32;
/** Tokens have 4 bytes (libtorrent) to 20 bytes. */
const MAX_TOKEN_BYTES = 64;
/** Maximum numbers of nodes and peers read from one response. With longer lists, a node could make this program contact
 * many victims. */
const MAX_NODES = 16;
const MAX_PEERS = 100;
const FILTER_BYTES = 256;
const MAX_SAMPLES = 64;
const FORMAT = "KRPC";

/** Decodes a DHT datagram strictly (BEP 5, 32, 33, 42, 43, 44, 51). Throws `DecodeError`. */
export function decodeKrpc(bytes: Uint8Array): KrpcMessage {
  if (bytes.length > MAX_KRPC_BYTES)
    throw fault(`expected at most ${MAX_KRPC_BYTES} bytes, not ${bytes.length}`);
  const message = viewBencode(bytes, LIMITS);
  const transaction = bounded(message.get("t"), MAX_TRANSACTION_BYTES, "transaction");
  const kind = message.get("y")?.bytes();
  if (kind?.length !== 1) throw fault("expected a message type");
  switch (kind[0]) {
    case 0x71:
      return query(bytes, message, transaction);
    case 0x72:
      return reply(bytes, message, transaction);
    case 0x65:
      return failure(message, transaction);
    default:
      throw fault("expected a query, a response or an error");
  }
}

function query(bytes: Uint8Array, message: BencodeView, transaction: Uint8Array): KrpcQuery {
  const args = message.get("a");
  const name = message.get("q")?.bytes();
  if (!args?.isDict || !name || name.length > 32) throw fault("expected a method and arguments");
  const id = idOf(args, "id");
  const isReadOnly = message.get("ro")?.integer() === 1;
  return { kind: "query", transaction, id, isReadOnly, request: requestOf(latin1Text(name), args, bytes) };
}

function requestOf(method: string, args: BencodeView, bytes: Uint8Array): KrpcRequest {
  switch (method) {
    case "ping":
      return { method };
    case "find_node":
    case "sample_infohashes":
      return { method, target: idOf(args, "target"), want: wantOf(args) };
    case "get_peers": {
      const isScrape = args.get("scrape")?.integer() === 1;
      return { method, target: idOf(args, "info_hash"), want: wantOf(args), isScrape };
    }
    case "announce_peer":
      return announceOf(args);
    case "get":
      return {
        method,
        target: idOf(args, "target"),
        want: wantOf(args),
        sequence: sequenceOf(args.get("seq")),
      };
    case "put": {
      const item = itemOf(args, bytes);
      if (!item) throw fault("expected an item");
      return { method, token: tokenOf(args), item, cas: sequenceOf(args.get("cas")) };
    }
    default: {
      const target = args.get("target")?.bytes() ?? args.get("info_hash")?.bytes();
      const isId = target?.length === DHT_ID_BYTES;
      return { method: "other", target: isId ? Uint8Array.from(target) : undefined, want: wantOf(args) };
    }
  }
}

function announceOf(args: BencodeView): KrpcRequest {
  const isImplied = args.get("implied_port")?.integer() === 1;
  const port = isImplied ? 0 : args.get("port")?.integer();
  if (port === undefined || port < (isImplied ? 0 : 1) || port > 65_535) throw fault("expected a port");
  return {
    method: "announce_peer",
    target: idOf(args, "info_hash"),
    port,
    token: tokenOf(args),
    isSeed: args.get("seed")?.integer() === 1,
  };
}

function reply(bytes: Uint8Array, message: BencodeView, transaction: Uint8Array): KrpcReply {
  const body = message.get("r");
  if (!body?.isDict) throw fault("expected a dictionary of return values");
  const yourAddress = addressOf(message.get("ip"));
  const token = body.get("token");
  const item = itemOf(body, bytes);
  const sequence = sequenceOf(body.get("seq"));
  const seedFilter = filterOf(body.get("BFsd"));
  const peerFilter = filterOf(body.get("BFpe"));
  const samples = samplesOf(body);
  return {
    kind: "reply",
    transaction,
    id: idOf(body, "id"),
    ...(yourAddress && { yourAddress }),
    nodes: decodeCompactNodes(body.get("nodes")?.bytes() ?? EMPTY, 4, MAX_NODES),
    nodes6: decodeCompactNodes(body.get("nodes6")?.bytes() ?? EMPTY, 6, MAX_NODES),
    ...(token && { token: tokenOf(body) }),
    peers: peersOf(body.get("values")),
    ...(seedFilter && { seedFilter }),
    ...(peerFilter && { peerFilter }),
    ...(item && { item }),
    ...(sequence !== undefined && { sequence }),
    ...(samples && { samples }),
  };
}

function failure(message: BencodeView, transaction: Uint8Array): KrpcFailure {
  const [code, text] = message.get("e")?.items() ?? [];
  const yourAddress = addressOf(message.get("ip"));
  return {
    kind: "failure",
    transaction,
    ...(yourAddress && { yourAddress }),
    code: code?.integer() ?? 0,
    message: latin1Text((text?.bytes() ?? EMPTY).subarray(0, 100)),
  };
}

/** Reads peers of 6 or 18 bytes each; entries of another length, or with port 0, are skipped. */
function peersOf(list: BencodeView | undefined): PeerAddress[] {
  const peers: PeerAddress[] = [];
  for (const entry of list?.items() ?? []) {
    const address = addressOf(entry);
    if (address && address.port > 0 && peers.push(address) >= MAX_PEERS) break;
  }
  return peers;
}

function addressOf(view: BencodeView | undefined): PeerAddress | undefined {
  const bytes = view?.bytes();
  const family: AddressFamily | undefined = bytes?.length === 6 ? 4 : bytes?.length === 18 ? 6 : undefined;
  return bytes && family && decodeCompactPeers(bytes, family)[0];
}

/** Reads the item in a response or a `put`; undefined if there is none. Throws `DecodeError` if only one of key and signature is
 * present. */
function itemOf(dict: BencodeView, bytes: Uint8Array): DhtItem | undefined {
  const view = dict.get("v");
  if (!view) return undefined;
  const { start, end } = view.range;
  if (end - start > MAX_ITEM_BYTES)
    throw fault(`expected an item of at most ${MAX_ITEM_BYTES} bytes, not ${end - start}`);
  // Some nodes put their client version in `v`. It looks like an immutable item, and its hash does not match the target.
  const value = Uint8Array.from(bytes.subarray(start, end));
  const [key, signature] = [dict.get("k")?.bytes(), dict.get("sig")?.bytes()];
  if (!key && !signature) return { value };
  const sequence = sequenceOf(dict.get("seq"));
  if (key?.length !== ITEM_KEY_BYTES || signature?.length !== SIGNATURE_BYTES || sequence === undefined)
    throw fault("expected the key, signature and sequence number of an item");
  const salt = dict.get("salt");
  return {
    value,
    signed: {
      key: Uint8Array.from(key),
      salt: salt ? bounded(salt, MAX_SALT_BYTES, "salt") : EMPTY,
      sequence,
      signature: Uint8Array.from(signature),
    },
  };
}

function samplesOf(body: BencodeView): KrpcReply["samples"] {
  const infohashes = body.get("samples")?.bytes();
  if (!infohashes) return undefined;
  if (infohashes.length % DHT_ID_BYTES !== 0 || infohashes.length > MAX_SAMPLES * DHT_ID_BYTES)
    throw fault("expected infohashes of 20 bytes each");
  const whole = (name: string) => Math.max(0, body.get(name)?.integer() ?? 0);
  return {
    infohashes: Uint8Array.from(infohashes),
    count: whole("num"),
    intervalSeconds: whole("interval"),
  };
}

function wantOf(args: BencodeView): Want {
  const list = args.get("want");
  if (!list?.isList) return undefined;
  const names = [...list.items()].slice(0, 4).map((entry) => latin1Text(entry.bytes() ?? EMPTY));
  return ([4, 6] as const).filter((family) => names.includes(`n${family}`));
}

function sequenceOf(view: BencodeView | undefined): number | undefined {
  return view?.integer();
}

function filterOf(view: BencodeView | undefined): Uint8Array | undefined {
  const bytes = view?.bytes();
  return bytes?.length === FILTER_BYTES ? Uint8Array.from(bytes) : undefined;
}

function tokenOf(dict: BencodeView): Uint8Array {
  return bounded(dict.get("token"), MAX_TOKEN_BYTES, "token");
}

function idOf(dict: BencodeView, name: string): Uint8Array {
  const bytes = dict.get(name)?.bytes();
  if (bytes?.length !== DHT_ID_BYTES) throw fault(`expected 20 bytes of ${name}`);
  return Uint8Array.from(bytes);
}

function bounded(view: BencodeView | undefined, limitBytes: number, what: string): Uint8Array {
  const bytes = view?.bytes();
  if (!bytes || bytes.length > limitBytes) throw fault(`expected a ${what} of at most ${limitBytes} bytes`);
  return Uint8Array.from(bytes);
}

function fault(message: string): DecodeError {
  return new DecodeError(FORMAT, 0, message);
}

const EMPTY = new Uint8Array(0);
