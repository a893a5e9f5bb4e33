import type {
  LivePosition,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
  VariantFacts,
} from "../transfer/segment-source.ts";

/** A source of segments made from those of another source, in the same container. What a subclass does not override is that of the other source. */
export class DerivedSource implements SegmentSource {
  protected readonly source: SegmentSource;

  constructor(source: SegmentSource) {
    this.source = source;
  }

  get container(): "ts" | "fmp4" {
    return this.source.container;
  }

  get isLive(): boolean {
    return this.source.isLive;
  }

  get name(): string {
    return this.source.name;
  }

  get bytesPerSecond(): number | undefined {
    return this.source.bytesPerSecond;
  }

  get variants(): readonly VariantFacts[] {
    return this.source.variants ?? [];
  }

  get variantIndex(): number {
    return this.source.variantIndex ?? -1;
  }

  manifest(place: ManifestPlace, rendition: ManifestRendition, signal: AbortSignal): Promise<string> {
    return this.source.manifest(place, rendition, signal);
  }

  first(signal: AbortSignal): Promise<number> {
    return this.source.first(signal);
  }

  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.source.reach(index, signal);
  }

  find(kind: SegmentName["kind"], number: number, signal: AbortSignal, track?: number): Promise<number> {
    return this.source.find(kind, number, signal, track);
  }

  isWhole(number: number): boolean {
    return this.source.isWhole?.(number) ?? false;
  }

  livePosition(): LivePosition | undefined {
    return this.source.livePosition?.();
  }

  make(kind: SegmentName["kind"], index: number, track: number, signal: AbortSignal): Promise<SegmentBytes> {
    return this.source.make(kind, index, track, signal);
  }
}
