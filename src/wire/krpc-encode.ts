import type { PeerAddress } from "../base/address.ts";
import { familyOf } from "../base/address.ts";
import { latin1Bytes } from "../base/bytes.ts";
import { Bencoded, type BencodeInput, bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { type AddressFamily, compactPeerBytes, encodeCompactPeers } from "./compact-peers.ts";
import type { DhtItem, KrpcAsk, KrpcFailure, KrpcMessage, KrpcQuery, KrpcReply, Want } from "./krpc.ts";
import { compactNodeBytes, encodeCompactNodes } from "./krpc-nodes.ts";

/** Who we are (BEP 5 `v`): two letters of the client, two bytes of its version. */
const VERSION = latin1Bytes("SL\x00\x01");

/** The one canonical form of a message. */
export function encodeKrpc(message: KrpcMessage): Uint8Array<ArrayBuffer> {
  switch (message.kind) {
    case "query":
      return encodeQuery(message);
    case "reply":
      return encodeReply(message);
    case "failure":
      return encodeFailure(message);
  }
}

/**
 * An answer of at most `limitBytes`, with as many of its peers and nodes as fit: peers get half of the room where there are
 * nodes too, filters and samples what they need. Undefined where nothing fits.
 */
export function encodeKrpcWithin(reply: KrpcReply, limitBytes: number): Uint8Array<ArrayBuffer> | undefined {
  const whole = encodeReply(reply);
  if (whole.length <= limitBytes) return whole;
  const { nodes = [], nodes6 = [], peers = [], ...rest } = reply;
  const { samples, seedFilter, peerFilter, ...least } = rest;
  const bare = encodeReply(rest).length + LISTS_BYTES <= limitBytes ? rest : least;
  let roomBytes = limitBytes - encodeReply(bare).length - LISTS_BYTES;
  if (roomBytes < 0) {
    const bytes = encodeReply(bare);
    return bytes.length <= limitBytes ? bytes : undefined;
  }
  const peerRoomBytes = nodes.length + nodes6.length > 0 ? roomBytes / 2 : roomBytes;
  const peerBytes =
    compactPeerBytes(peers.some(({ host }) => familyOf(host) === 6) ? 6 : 4) + PEER_HEAD_BYTES;
  const fewPeers = peers.slice(0, Math.floor(peerRoomBytes / peerBytes));
  roomBytes -= fewPeers.length * peerBytes;
  const fewNodes = nodes.slice(0, Math.floor(roomBytes / compactNodeBytes(4)));
  roomBytes -= fewNodes.length * compactNodeBytes(4);
  const fewNodes6 = nodes6.slice(0, Math.floor(roomBytes / compactNodeBytes(6)));
  const fitting = encodeReply({ ...bare, peers: fewPeers, nodes: fewNodes, nodes6: fewNodes6 });
  return fitting.length <= limitBytes ? fitting : undefined;
}

/** Keys, lengths and ends of three lists. */
const LISTS_BYTES = 40;
/** A peer is a string of its own: `6:` or `18:` comes before it. */
const PEER_HEAD_BYTES = 3;

function encodeQuery({ transaction, id, isReadOnly, ask }: KrpcQuery): Uint8Array<ArrayBuffer> {
  return encodeBencode(
    bencodeDict({
      a: bencodeDict({ id, ...argumentsOf(ask) }),
      q: ask.method,
      ro: isReadOnly ? 1 : undefined,
      t: transaction,
      v: VERSION,
      y: "q",
    }),
  );
}

function argumentsOf(ask: KrpcAsk): Readonly<Record<string, BencodeInput | undefined>> {
  switch (ask.method) {
    case "ping":
      return {};
    case "find_node":
    case "sample_infohashes":
    case "other":
      return { target: ask.target, want: wantNames(ask.want) };
    case "get_peers":
      return { info_hash: ask.target, scrape: ask.isScrape ? 1 : undefined, want: wantNames(ask.want) };
    case "announce_peer":
      return {
        implied_port: ask.port === 0 ? 1 : 0,
        info_hash: ask.target,
        // Old nodes do not know of implied ports and want one.
        port: ask.port === 0 ? 1 : ask.port,
        seed: ask.isSeed ? 1 : 0,
        token: ask.token,
      };
    case "get":
      return { target: ask.target, seq: ask.sequence, want: wantNames(ask.want) };
    case "put":
      return { ...itemMembers(ask.item), cas: ask.cas, token: ask.token, ...saltMember(ask.item) };
  }
}

function encodeReply(reply: KrpcReply): Uint8Array<ArrayBuffer> {
  const { id, nodes = [], nodes6 = [], peers = [], samples } = reply;
  const body = bencodeDict({
    id,
    BFsd: reply.seedFilter,
    BFpe: reply.peerFilter,
    interval: samples?.intervalSeconds,
    nodes: nodes.length > 0 ? encodeCompactNodes(nodes, 4) : undefined,
    nodes6: nodes6.length > 0 ? encodeCompactNodes(nodes6, 6) : undefined,
    num: samples?.count,
    samples: samples?.infohashes,
    seq: reply.sequence,
    token: reply.token,
    values: peers.length > 0 ? peers.map(compactAddress) : undefined,
    ...(reply.item && itemMembers(reply.item)),
  });
  return encodeBencode(bencodeDict({ ...envelope(reply), r: body, y: "r" }));
}

function encodeFailure(failure: KrpcFailure): Uint8Array<ArrayBuffer> {
  const e = [failure.code, failure.message];
  return encodeBencode(bencodeDict({ ...envelope(failure), e, y: "e" }));
}

function envelope({ transaction, yourAddress }: KrpcReply | KrpcFailure) {
  return { ip: yourAddress && compactAddress(yourAddress), t: transaction, v: VERSION };
}

function itemMembers({ value, signed }: DhtItem): Readonly<Record<string, BencodeInput>> {
  const v = new Bencoded(value);
  return signed ? { k: signed.key, seq: signed.sequence, sig: signed.signature, v } : { v };
}

function saltMember({ signed }: DhtItem): Readonly<Record<string, BencodeInput>> {
  return signed && signed.salt.length > 0 ? { salt: signed.salt } : {};
}

function wantNames(want: Want): readonly string[] | undefined {
  return want?.map((family) => `n${family}`);
}

function compactAddress(address: PeerAddress): Uint8Array {
  const family: AddressFamily = familyOf(address.host);
  return encodeCompactPeers([address], family);
}
