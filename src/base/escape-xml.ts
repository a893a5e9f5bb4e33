const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/**
 * Escapes a text for an XML element or a quoted attribute, and drops the characters that XML 1.0 forbids (section 2.2), among them
 * lone surrogates.
 */
export function escapeXml(text: string): string {
  const allowed = text.replace(/(?![\t\n\r])[\p{Cc}\p{Cs}\ufffe\uffff]/gu, "");
  return allowed.replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}
