/* Copy buttons: shown only where this script runs. */
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
