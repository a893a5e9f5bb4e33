import {
  decodeNatPmpAnswer,
  encodeNatPmpAddressQuestion,
  encodeNatPmpMapQuestion,
  type NatPmpAnswer,
  type NatPmpMapping,
  natPmpProblem,
} from "../../../wire/nat-pmp.ts";
import { askRouter } from "./ask-router.ts";
import { LEASE_SECONDS, type OpenMapper, RouterError } from "./contract.ts";

/** Ports mapped by NAT-PMP (RFC 6886). */
export const openNatPmp: OpenMapper = async (parts, place, signal) => {
  const ask = async <Kind extends NatPmpAnswer["kind"]>(
    kind: Kind,
    question: Uint8Array,
    fits: (answer: NatPmpAnswer) => boolean,
    during: AbortSignal,
  ): Promise<Extract<NatPmpAnswer, { kind: Kind }>> => {
    const read = (bytes: Uint8Array) => {
      const answer = decodeNatPmpAnswer(bytes);
      return answer.kind === kind && fits(answer) ? answer : undefined;
    };
    const answer = await askRouter(parts, place, question, read, during);
    if (answer.result !== 0) throw new RouterError(natPmpProblem(answer.result));
    return answer as Extract<NatPmpAnswer, { kind: Kind }>;
  };
  const askAddress = async (during: AbortSignal) => {
    const { address } = await ask("address", encodeNatPmpAddressQuestion(), () => true, during);
    return address === "0.0.0.0" ? undefined : address;
  };
  const askMap = (mapping: NatPmpMapping, during: AbortSignal) => {
    const { protocol, internalPort } = mapping;
    const fits = (answer: NatPmpAnswer) =>
      answer.kind === "map" && answer.protocol === protocol && answer.internalPort === internalPort;
    return ask("map", encodeNatPmpMapQuestion(mapping), fits, during);
  };
  await askAddress(signal);
  return {
    kind: "NAT-PMP",
    routerName: "",
    async map(wish, externalPort, during) {
      const answer = await askMap({ ...wish, externalPort, lifetimeSeconds: LEASE_SECONDS }, during);
      const { lifetimeSeconds, epochSeconds } = answer;
      if (answer.externalPort === 0) throw new RouterError("it maps to no port");
      const externalAddress = await askAddress(during);
      return { ...wish, externalPort: answer.externalPort, externalAddress, lifetimeSeconds, epochSeconds };
    },
    async unmap({ protocol, internalPort, externalPort }, during) {
      await askMap({ protocol, internalPort, externalPort, lifetimeSeconds: 0 }, during);
    },
  };
};
