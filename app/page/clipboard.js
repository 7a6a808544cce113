// Copies text, and says so in an element.

export async function copyText(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "The browser blocked copying.";
  }
}
