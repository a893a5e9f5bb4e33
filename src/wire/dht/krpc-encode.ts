import type { PeerAddress } from "../../base/address.ts";
import { familyOf } from "../../base/address.ts";
import { latin1Bytes } from "../../base/bytes.ts";
import { Bencoded, type BencodeInput, bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { type AddressFamily, compactPeerBytes, encodeCompactPeers } from "../compact-peers.ts";
import type { DhtItem, KrpcFailure, KrpcMessage, KrpcQuery, KrpcReply, KrpcRequest, Want } from "./krpc.ts";
import { compactNodeBytes, encodeCompactNodes } from "./krpc-nodes.ts";

/** Client version (BEP 5 `v`): two letters of the client, two bytes of version. */
const VERSION = latin1Bytes("SL\x00\x01");

/** Encodes a message. */
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
 * Encodes a response in at most `limitBytes`, with as many peers and nodes as fit: peers get half of the space if there are nodes,
 * too. Filters and samples are omitted if they do not fit. Returns undefined if even the rest does not fit.
 */
export function encodeKrpcWithin(reply: KrpcReply, limitBytes: number): Uint8Array<ArrayBuffer> | undefined {
  const whole = encodeReply(reply);
  if (whole.length <= limitBytes) return whole;
  const { nodes = [], nodes6 = [], peers = [], ...rest } = reply;
  const { samples, seedFilter, peerFilter, ...minimal } = rest;
  const bare = encodeReply(rest).length + LISTS_BYTES <= limitBytes ? rest : minimal;
  let spaceBytes = limitBytes - encodeReply(bare).length - LISTS_BYTES;
  if (spaceBytes < 0) {
    const bytes = encodeReply(bare);
    return bytes.length <= limitBytes ? bytes : undefined;
  }
  const peerSpaceBytes = nodes.length + nodes6.length > 0 ? spaceBytes / 2 : spaceBytes;
  const peerBytes =
    compactPeerBytes(peers.some(({ host }) => familyOf(host) === 6) ? 6 : 4) + PEER_HEAD_BYTES;
  const fewPeers = peers.slice(0, Math.floor(peerSpaceBytes / peerBytes));
  spaceBytes -= fewPeers.length * peerBytes;
  const fewNodes = nodes.slice(0, Math.floor(spaceBytes / compactNodeBytes(4)));
  spaceBytes -= fewNodes.length * compactNodeBytes(4);
  const fewNodes6 = nodes6.slice(0, Math.floor(spaceBytes / compactNodeBytes(6)));
  const fitting = encodeReply({ ...bare, peers: fewPeers, nodes: fewNodes, nodes6: fewNodes6 });
  return fitting.length <= limitBytes ? fitting : undefined;
}

/** Space for the keys, lengths and ends of three lists. */
const LISTS_BYTES = 40;
/** Length prefix of a peer: `6:` or `18:`. */
const PEER_HEAD_BYTES = 3;

function encodeQuery({ transaction, id, isReadOnly, request }: KrpcQuery): Uint8Array<ArrayBuffer> {
  return encodeBencode(
    bencodeDict({
      a: bencodeDict({ id, ...argumentsOf(request) }),
      q: request.method,
      ro: isReadOnly ? 1 : undefined,
      t: transaction,
      v: VERSION,
      y: "q",
    }),
  );
}

function argumentsOf(request: KrpcRequest): Readonly<Record<string, BencodeInput | undefined>> {
  switch (request.method) {
    case "ping":
      return {};
    case "find_node":
    case "sample_infohashes":
    case "other":
      return { target: request.target, want: wantNames(request.want) };
    case "get_peers":
      return {
        info_hash: request.target,
        scrape: request.isScrape ? 1 : undefined,
        want: wantNames(request.want),
      };
    case "announce_peer":
      return {
        implied_port: request.port === 0 ? 1 : 0,
        info_hash: request.target,
        // Nodes without support for `implied_port` require a port.
        port: request.port === 0 ? 1 : request.port,
        seed: request.isSeed ? 1 : 0,
        token: request.token,
      };
    case "get":
      return { target: request.target, seq: request.sequence, want: wantNames(request.want) };
    case "put":
      return {
        ...itemMembers(request.item),
        cas: request.cas,
        token: request.token,
        ...saltMember(request.item),
      };
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
