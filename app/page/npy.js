// Arrays in NumPy's own format, as the service writes them: version 1.0, little-endian, float32 or float16.

const HALVES = new Float32Array(2 ** 16); // every number of float16
for (let bits = 0; bits < 2 ** 16; bits++) {
  const [power, rest] = [(bits >> 10) & 31, bits & 1023];
  const size = power ? (1 + rest / 1024) * 2 ** (power - 15) : rest * 2 ** -24;
  HALVES[bits] = bits >> 15 ? -size : size;
}

/** `bytes`: an ArrayBuffer. Returns `shape`, and `data` as a Float32Array. */
export function readNpy(bytes) {
  const start = 10 + new DataView(bytes).getUint16(8, true);
  const header = new TextDecoder().decode(bytes.slice(10, start));
  const shape = /'shape': \(([\d, ]*)\)/.exec(header)[1].split(",").filter((size) => size.trim()).map(Number);
  const content = bytes.slice(start); // aligned
  const data = header.includes("<f2") ? Float32Array.from(new Uint16Array(content), (bits) => HALVES[bits]) : new Float32Array(content);
  return { shape, data };
}
