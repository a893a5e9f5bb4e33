/** A service as {@link mdnsAnswer} announces it. */
export interface AnsweredService {
  readonly type: string;
  readonly instance: string;
  readonly port: number;
  readonly address: string;
  readonly texts?: Readonly<Record<string, string>>;
  /** In seconds; default 120. */
  readonly ttl?: number;
}

/** A multicast DNS response with PTR, SRV, TXT and A records, names compressed as real responders do. */
export function mdnsAnswer(service: AnsweredService): Uint8Array<ArrayBuffer> {
  const { type, instance, port, address, texts = {}, ttl = 120 } = service;
  const label = (text: string) => Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)]);
  const name = (text: string) => Buffer.concat([...text.split(".").map(label), Buffer.from([0])]);
  const pointer = (at: number) => Buffer.from([0xc0 | (at >> 8), at & 0xff]);
  const record = (owner: Buffer, kind: number, data: Buffer) => {
    const head = Buffer.alloc(10);
    head.writeUInt16BE(kind, 0);
    head.writeUInt16BE(0x8001, 2);
    head.writeUInt32BE(ttl, 4);
    head.writeUInt16BE(data.length, 8);
    return Buffer.concat([owner, head, data]);
  };
  const head = Buffer.from("000084000000000100000003", "hex");
  const instanceName = Buffer.concat([label(instance), pointer(head.length)]);
  const ptr = record(name(type), 12, instanceName);
  const instanceAt = pointer(head.length + name(type).length + 10);
  const place = Buffer.alloc(6);
  place.writeUInt16BE(port, 4);
  const srv = record(instanceAt, 33, Buffer.concat([place, name("host.local")]));
  const pairs = Object.entries(texts).map(([key, value]) => label(`${key}=${value}`));
  const txt = record(instanceAt, 16, pairs.length > 0 ? Buffer.concat(pairs) : Buffer.from([0]));
  const a = record(name("host.local"), 1, Buffer.from(address.split(".").map(Number)));
  return new Uint8Array(Buffer.concat([head, ptr, srv, txt, a]));
}
