// The files that the end-to-end tests edit, and what the scripted target makes of each.

const cart = `"""A shopping cart."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price: float
    quantity: int = 1


@dataclass
class Cart:
    items: list[Item] = field(default_factory=list)

    def add(self, item: Item) -> None:
        self.items.append(item)

    def total(self) -> float:
        total = 0.0
        for item in self.items:
            total += item.price * item.quantity
        return total

    def remove(self, name: str) -> None:
        self.items = [item for item in self.items if item.name != name]

    def clear(self) -> None:
        # Legacy: kept for old callers.
        self.items = []
`;

const cartAfter = cart
  .replace('    quantity: int = 1\n', '    quantity: int = 1\n    discount: float = 0.0\n')
  .replace(
    '            total += item.price * item.quantity\n',
    '            price = item.price * (1 - item.discount)\n            total += price * item.quantity\n',
  )
  .replace('        # Legacy: kept for old callers.\n', '');

const lines = (count, text) => Array.from({ length: count }, (_, i) => text(i)).join('');
const plain = lines(40, (i) => `value_${i} = ${i}\n`);
const plainAfter = plain.replace('value_7 = 7', 'value_7 = 77').replace('value_30 = 30', 'x = 30');
const slow = lines(60, (i) => `def f_${i}():\n    return ${i}\n\n`);
const slowAfter = lines(60, (i) =>
  i % 2 === 0 ? `def g_${i * 7}():\n    yield ${i * 31}\n\n` : `def f_${i}():\n    return ${i}\n\n`,
);

const snippet = `class Cart:
    # ... existing code ...

    def remove(self, name: str) -> None:
        self.items = [item for item in self.items if item.name != name]

    def count(self) -> int:
        return sum(item.quantity for item in self.items)

    # ... existing code ...
`;
const cartWithCount = cart.replace(
  '    def clear(',
  '    def count(self) -> int:\n        return sum(item.quantity for item in self.items)\n\n    def clear(',
);

const files = {
  'cart.py': cart,
  'snippet.py': cart,
  'plain.py': plain,
  'other.py': plain,
  'crlf.py': plain.replaceAll('\n', '\r\n'),
  'same.py': plain,
  'direct.py': plain,
  'slow.py': slow,
  'slow2.py': slow,
  'typed.py': slow,
  'killed.py': slow,
  'locked.py': plain,
  'unended.py': 'a = 1\nb = 2',
  'gone.py': plain,
  'unknown.py': plain, // no answer: as if there were no model
};

const answers = {
  'cart.py': cartAfter,
  'snippet.py': cartWithCount,
  'plain.py': plainAfter,
  'other.py': plainAfter,
  'crlf.py': plainAfter.replaceAll('\n', '\r\n'),
  'same.py': plain,
  'direct.py': plainAfter,
  'slow.py': slowAfter,
  'slow2.py': slowAfter,
  'typed.py': slowAfter,
  'killed.py': slowAfter,
  'locked.py': plainAfter,
  'unended.py': 'a = 1\nb = 3\nc = 4',
  'gone.py': 'value_0 = 0\n',
};

exports.files = files;
exports.answers = answers;
exports.snippet = snippet;
