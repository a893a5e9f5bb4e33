import { canonicalAddress } from "../../base/address.ts";
import { decodeRouterDescription, MAX_DESCRIPTION_BYTES } from "../../wire/router/upnp-description.ts";
import { SOAP_ERRORS, type SoapCall, type SoapResponse } from "../../wire/upnp/soap.ts";
import {
  LEASE_SECONDS,
  type MappedPort,
  type OpenMapper,
  type PortMapper,
  type PortRequest,
  type RouterDependencies,
  RouterError,
  type RouterLocation,
} from "./contract.ts";
import { callService, fetchDescription } from "./upnp-call.ts";
import { searchRouters } from "./upnp-search.ts";
import { type ServiceEndpoint, serviceEndpoints } from "./upnp-urls.ts";

/** Shown in the router's list of port mappings. */
const DESCRIPTION = "Sluice";
/** The service of IGD 2, which can choose another external port. */
const CHOOSES_PORTS = "urn:schemas-upnp-org:service:WANIPConnection:2";

/** Maps ports by UPnP IGD 1 and 2. */
export const openUpnp: OpenMapper = async (dependencies, location, signal) => {
  let problem: unknown = new RouterError("the router has no port mapping service");
  for (const url of await searchRouters(dependencies, location, signal)) {
    try {
      const limit = MAX_DESCRIPTION_BYTES;
      const router = await fetchDescription(dependencies, url, limit, decodeRouterDescription, signal);
      const service = await connected(dependencies, serviceEndpoints(router, url), signal);
      if (service) return new UpnpMapper(dependencies, location, service, router.name);
    } catch (thrown) {
      if (!(thrown instanceof RouterError)) throw thrown;
      problem = thrown;
    }
  }
  throw problem;
};

/** Returns the first service with an external address; if none has one, the first. */
async function connected(
  dependencies: RouterDependencies,
  services: readonly ServiceEndpoint[],
  signal: AbortSignal,
): Promise<ServiceEndpoint | undefined> {
  if (services.length < 2) return services[0];
  for (const service of services) {
    const address = await externalAddress(dependencies, service, signal).catch((thrown: unknown) => {
      if (thrown instanceof RouterError) return undefined;
      throw thrown;
    });
    if (address !== undefined) return service;
  }
  return services[0];
}

class UpnpMapper implements PortMapper {
  readonly kind = "UPnP";
  readonly routerName: string;
  readonly #dependencies: RouterDependencies;
  readonly #location: RouterLocation;
  readonly #service: ServiceEndpoint;
  /** 0 if the router supports only permanent mappings (error 725), which last until they are deleted. */
  #leaseSeconds = LEASE_SECONDS;

  constructor(
    dependencies: RouterDependencies,
    location: RouterLocation,
    service: ServiceEndpoint,
    routerName: string,
  ) {
    this.#dependencies = dependencies;
    this.#location = location;
    this.#service = service;
    this.routerName = routerName;
  }

  async map(request: PortRequest, externalPort: number, signal: AbortSignal): Promise<MappedPort> {
    const mappedAt = await this.#add(request, externalPort, signal);
    return {
      ...request,
      externalPort: mappedAt,
      externalAddress: await externalAddress(this.#dependencies, this.#service, signal),
      lifetimeSeconds: this.#leaseSeconds === 0 ? Number.POSITIVE_INFINITY : this.#leaseSeconds,
      epochSeconds: undefined,
    };
  }

  async unmap({ protocol, externalPort }: MappedPort, signal: AbortSignal): Promise<void> {
    const answer = await this.#call(
      "DeletePortMapping",
      [
        ["NewRemoteHost", ""],
        ["NewExternalPort", externalPort],
        ["NewProtocol", protocol.toUpperCase()],
      ],
      signal,
    );
    if (!answer.ok && answer.code !== SOAP_ERRORS.noSuchEntry) throw refusal(answer);
  }

  /** Adds a mapping and returns its external port. */
  async #add(request: PortRequest, externalPort: number, signal: AbortSignal): Promise<number> {
    const answer = await this.#call("AddPortMapping", this.#mapping(request, externalPort), signal);
    if (answer.ok) return externalPort;
    const { permanentOnly, invalidArguments, conflict } = SOAP_ERRORS;
    if (this.#leaseSeconds > 0 && (answer.code === permanentOnly || answer.code === invalidArguments)) {
      this.#leaseSeconds = 0;
      return this.#add(request, externalPort, signal);
    }
    if (answer.code === conflict && this.#service.type === CHOOSES_PORTS)
      return this.#addAny(request, externalPort, signal);
    throw refusal(answer);
  }

  async #addAny(request: PortRequest, externalPort: number, signal: AbortSignal): Promise<number> {
    const answer = await this.#call("AddAnyPortMapping", this.#mapping(request, externalPort), signal);
    if (!answer.ok) throw refusal(answer);
    const reserved = answer.values.get("NewReservedPort") ?? "";
    const port = /^\d{1,5}$/.test(reserved) ? Number(reserved) : 0;
    if (port === 0 || port > 65_535) throw new RouterError("the router did not report the mapped port");
    return port;
  }

  #mapping({ protocol, internalPort }: PortRequest, externalPort: number): SoapCall["parameters"] {
    return [
      ["NewRemoteHost", ""],
      ["NewExternalPort", externalPort],
      ["NewProtocol", protocol.toUpperCase()],
      ["NewInternalPort", internalPort],
      ["NewInternalClient", this.#location.own.host],
      ["NewEnabled", 1],
      ["NewPortMappingDescription", DESCRIPTION],
      ["NewLeaseDuration", this.#leaseSeconds],
    ];
  }

  #call(action: string, parameters: SoapCall["parameters"], signal: AbortSignal): Promise<SoapResponse> {
    const { type, url } = this.#service;
    return callService(this.#dependencies, url, { serviceType: type, action, parameters }, signal);
  }
}

async function externalAddress(
  dependencies: RouterDependencies,
  { type, url }: ServiceEndpoint,
  signal: AbortSignal,
): Promise<string | undefined> {
  const call = { serviceType: type, action: "GetExternalIPAddress", parameters: [] };
  const answer = await callService(dependencies, url, call, signal);
  if (!answer.ok) return undefined;
  const address = canonicalAddress(answer.values.get("NewExternalIPAddress") ?? "");
  return address === "0.0.0.0" ? undefined : address;
}

function refusal({ code, text }: Extract<SoapResponse, { ok: false }>): RouterError {
  const isConflict = code === SOAP_ERRORS.conflict;
  const reason =
    code === SOAP_ERRORS.notAuthorised
      ? "port mapping is disabled on the router"
      : `the router refused: ${text || code}`;
  return isConflict
    ? new RouterError("the port is mapped to another computer", "conflict")
    : new RouterError(reason);
}
