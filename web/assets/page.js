/* Copy buttons, and the passcode of a share: shown only where this script runs. */
'use strict';

function announce(text) {
  document.getElementById('announcement').textContent = text;
}

function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

async function copy(button) {
  const code = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
    announce('Copied to the clipboard.');
  } catch {
    // The clipboard is there on secure pages only; a selection works everywhere.
    select(code);
    button.textContent = 'Press Ctrl+C';
    announce('Selected. Press Control C, or Command C on a Mac, to copy.');
  }
  setTimeout(() => {
    button.textContent = 'Copy';
    announce('');
  }, 3000);
}

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false;
  button.addEventListener('click', () => copy(button));
}

/* A header holds bytes: the passcode goes as UTF-8. */
function asHeader(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function save(blob, filename) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = filename;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

async function refusalOf(response) {
  const problem = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get('Retry-After'));
  if (problem.code === 'rate_limited' && wait > 0) return `Too many wrong passcodes were tried. Try again in ${Math.ceil(wait / 60)} min.`;
  return problem.title ? `${problem.title}.` : 'The download failed.';
}

async function fetchWithPasscode(form) {
  const { address, filename } = form.dataset;
  const [input, button, status] = [form.querySelector('input'), form.querySelector('button'), form.querySelector('[role=alert]')];
  button.disabled = true;
  status.textContent = 'Fetching\u2026';
  try {
    const response = await fetch(address, { headers: { 'X-Share-Passcode': asHeader(input.value.trim()) } });
    if (response.ok) save(await response.blob(), filename);
    status.textContent = response.ok ? 'Saved.' : await refusalOf(response);
  } catch {
    status.textContent = 'The download failed. Check the connection and try again.';
  }
  button.disabled = false;
  input.value = '';
}

for (const form of document.querySelectorAll('form.passcode')) {
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void fetchWithPasscode(form);
  });
}
