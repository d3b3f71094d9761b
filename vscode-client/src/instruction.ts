/** Ask for an instruction: typed, or one of those given before, the last one first. */

import * as vscode from 'vscode';
import { remembered } from './history';

const KEY = 'applyEdit.instructions';

export class Instructions {
  constructor(private readonly state: vscode.Memento) {}

  /** What the user wants done to `name`; undefined where they changed their mind. */
  async ask(name: string, limited: boolean): Promise<string | undefined> {
    const typed = await this.pick(`Apply Edit: ${name}${limited ? ', the selected lines' : ''}`);
    if (typed !== undefined) {
      await this.state.update(KEY, remembered(this.history(), typed));
    }
    return typed;
  }

  private history(): string[] {
    return this.state.get<string[]>(KEY, []);
  }

  private pick(title: string): Promise<string | undefined> {
    const picker = vscode.window.createQuickPick();
    const before = this.history().map((label) => ({
      label,
      iconPath: new vscode.ThemeIcon('history'),
    }));
    picker.title = title;
    picker.placeholder = 'What to change, in words';
    picker.items = before;
    return new Promise((resolve) => {
      picker.onDidChangeValue((value) => {
        const wanted = value.trim();
        const typed = {
          label: wanted,
          description: 'Enter to apply',
          iconPath: new vscode.ThemeIcon('edit'),
          alwaysShow: true,
        };
        const others = before.filter(({ label }) => label !== wanted);
        picker.items = wanted === '' ? before : [typed, ...others];
      });
      picker.onDidAccept(() => {
        resolve(picker.activeItems[0]?.label ?? (picker.value.trim() || undefined));
        picker.hide();
      });
      picker.onDidHide(() => {
        resolve(undefined);
        picker.dispose();
      });
      picker.show();
    });
  }
}
