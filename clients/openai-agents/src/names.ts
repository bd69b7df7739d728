/** Digits of a position. */
const width = 10;

/**
 * The names of the documents of a session. The name of the head is greater than those of the
 * positions, so that a reversed list begins with it.
 */
export class Names {
  /** Begins the names of the head and of all positions. */
  readonly all: string;
  readonly head: string;
  /** Begins the names of all operations. */
  readonly operations: string;

  constructor(sessionId: string) {
    const id = escaped(sessionId);
    this.all = `session/${id}/`;
    this.head = `${this.all}head`;
    this.operations = `operation/${id}/`;
  }

  at(position: number): string {
    return this.all + digits(position);
  }

  positionOf(name: string): number {
    return Number(name.slice(this.all.length));
  }

  /** Returns prefixes that the names of the positions from one up to another begin with, and no lower one. */
  from(position: number, end: number): string[] {
    if (position >= end) {
      return [];
    }
    const first = digits(position);
    const prefixes = [this.all + first];
    for (let place = width - 1; place >= 0; place--) {
      for (let digit = Number(first[place]) + 1; digit <= 9; digit++) {
        const prefix = first.slice(0, place) + String(digit);
        if (Number(prefix.padEnd(width, "0")) < end) {
          prefixes.push(this.all + prefix);
        }
      }
    }
    return prefixes;
  }
}

function digits(position: number): string {
  return String(position).padStart(width, "0");
}

/** Replaces what separates the parts of a name, and what names may not have. */
function escaped(id: unknown): string {
  if (typeof id !== "string" || id === "") {
    throw new TypeError("the id of a session must be a text that is not empty");
  }
  if (/[\ud800-\udfff]/u.test(id)) {
    throw new TypeError("the id of a session is not valid Unicode");
  }
  return id.replace(/[%/\x00-\x1f\x7f]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}
