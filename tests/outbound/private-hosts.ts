/** Addresses that a remote client must not reach through the engine: this host, its networks, cloud metadata services,
 * unspecified and multicast addresses. */
const PRIVATE_V4: readonly string[] = [
  ...[
    "127.0.0.1",
    "127.1.2.3",
    "127.255.255.254",
    "10.0.0.1",
    "10.255.255.254",
    "172.16.0.1",
    "172.31.255.254",
  ],
  ...["192.168.0.1", "192.168.255.254", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254"],
  ...[
    "100.100.100.200",
    "192.0.0.192",
    "198.18.0.1",
    "198.19.255.254",
    "168.63.129.16",
    "0.0.0.0",
    "0.1.2.3",
  ],
  ...["224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"],
];

const PRIVATE_V6 = [
  ...["::1", "::", "0:0:0:0:0:0:0:1", "fe80::1", "febf::1", "fec0::1", "fd00::1", "fdff:ffff::1", "fc00::1"],
  ...[
    "fd00:ec2::254",
    "ff02::1",
    "ff0e::1",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:7f00:0:100::",
    "64:ff9b:1:a00:0:100:808:808",
  ],
];

const NAMES = ["localhost", "LOCALHOST", "localhost.", "home.example", "half.example", "metadata.example"];

/** Every known way to write these addresses as the host of a URL. */
export function privateHosts(): string[] {
  return [...PRIVATE_V4.flatMap(formsOf), ...PRIVATE_V6.map((address) => `[${address}]`), ...NAMES];
}

/** Resolves `NAMES`; undefined for every other name. */
export function lookUpPrivate(name: string): string[] | undefined {
  switch (name.toLowerCase().replace(/\.$/, "")) {
    case "localhost":
      return ["127.0.0.1", "::1"];
    case "home.example":
      return ["192.168.1.1"];
    case "half.example":
      return ["93.184.216.34", "10.0.0.1"];
    case "metadata.example":
      return ["169.254.169.254"];
  }
  return undefined;
}

function formsOf(address: string): string[] {
  const parts = address.split(".").map(Number) as [number, number, number, number];
  const [a, b, c, d] = parts;
  const value = ((a * 256 + b) * 256 + c) * 256 + d;
  const hex = (number: number, digits = 0) => number.toString(16).padStart(digits, "0");
  const high = hex(a * 256 + b);
  const low = hex(c * 256 + d);
  return [
    address,
    `${address}.`,
    String(value),
    `0x${hex(value)}`,
    `0${value.toString(8)}`,
    parts.map((part) => `0${part.toString(8)}`).join("."),
    parts.map((part) => `0x${hex(part)}`).join("."),
    `${a}.${b * 65536 + c * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    address.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
    address.replaceAll(".", "%2e"),
    address.replaceAll(".", "\u3002"),
    `user:pass@${address}`,
    `pub.example@${address}`,
    `[::ffff:${address}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${high}:${low}]`,
    `[::${address}]`,
    `[2002:${high}:${low}::1]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b::${high}:${low}]`,
    `[2001:0:4136:e378:8000:63bf:${hex(0xffff ^ (a * 256 + b))}:${hex(0xffff ^ (c * 256 + d))}]`,
    `[2001:db8::5efe:${high}:${low}]`,
    `[2001:db8::200:5efe:${high}:${low}]`,
  ];
}
