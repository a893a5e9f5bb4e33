import { addressScope } from "../../../base/address.ts";
import { equalBytes } from "../../../base/bytes.ts";
import type { MappedProtocol } from "../../../wire/nat-pmp.ts";
import { decodePcpAnswer, encodePcpMap, type PcpAnswer, pcpProblem } from "../../../wire/pcp.ts";
import { askRouter } from "./ask-router.ts";
import {
  LEASE_SECONDS,
  type OpenMapper,
  type PortWish,
  RouterError,
  type RouterParts,
  type RouterPlace,
} from "./contract.ts";

/** RFC 6887 7.4: the port, or the address, that was asked for cannot be given. */
const CANNOT_PROVIDE_EXTERNAL = 11;
const NONCE_BYTES = 12;

/** Ports mapped by PCP (RFC 6887), over IPv4. The first wish shows whether the router speaks it. */
export const openPcp: OpenMapper = async (parts, place) => {
  const nonces: Record<MappedProtocol, Uint8Array> = {
    tcp: parts.runtime.randomBytes(NONCE_BYTES),
    udp: parts.runtime.randomBytes(NONCE_BYTES),
  };
  const ask = (wish: PortWish, externalPort: number, lifetimeSeconds: number, during: AbortSignal) =>
    askMap(parts, place, { ...wish, externalPort, lifetimeSeconds, nonce: nonces[wish.protocol] }, during);
  return {
    kind: "PCP",
    routerName: "",
    async map(wish, externalPort, during) {
      const answer = await ask(wish, externalPort, LEASE_SECONDS, during);
      const { lifetimeSeconds, epochSeconds, externalAddress } = answer;
      if (answer.externalPort === 0) throw new RouterError("it maps to no port");
      const isAddress = addressScope(externalAddress) !== "unspecified";
      return {
        ...wish,
        externalPort: answer.externalPort,
        externalAddress: isAddress ? externalAddress : undefined,
        lifetimeSeconds,
        epochSeconds,
      };
    },
    async unmap(mapped, during) {
      await ask(mapped, 0, 0, during);
    },
  };
};

async function askMap(
  parts: RouterParts,
  place: RouterPlace,
  wish: PortWish & { externalPort: number; lifetimeSeconds: number; nonce: Uint8Array },
  signal: AbortSignal,
): Promise<Extract<PcpAnswer, { kind: "map" }>> {
  const question = encodePcpMap({ ...wish, clientAddress: place.own.host });
  const read = (bytes: Uint8Array) => {
    const answer = decodePcpAnswer(bytes);
    if (answer.kind === "version") return answer;
    const isOurs = equalBytes(answer.nonce, wish.nonce) && answer.protocol === wish.protocol;
    return isOurs && answer.internalPort === wish.internalPort ? answer : undefined;
  };
  const answer = await askRouter(parts, place, question, read, signal);
  if (answer.kind === "version") throw new RouterError("it speaks another version of PCP", "silent");
  if (answer.result !== 0)
    throw new RouterError(
      pcpProblem(answer.result),
      answer.result === CANNOT_PROVIDE_EXTERNAL ? "conflict" : "refused",
    );
  return answer;
}
