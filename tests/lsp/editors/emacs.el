;;; -*- lexical-binding: t -*-
;; Run by test_editors.py: emacs --batch -l emacs.el
;; Opens $FILE, connects eglot to the server named in $SERVER (a JSON list), and writes what it saw
;; to $OUT.

(require 'package)
(package-initialize)
(require 'eglot)
(require 'json)

(setq make-backup-files nil
      auto-save-default nil
      create-lockfiles nil
      eglot-confirm-server-initiated-edits nil
      eglot-sync-connect 30
      eglot-autoshutdown nil
      eglot-events-buffer-size 0)
(set-language-environment "UTF-8")

(defvar seen nil)
(defvar server nil)

(defun see (name value) (push (cons name value) seen))

(defun text () (buffer-substring-no-properties (point-min) (point-max)))

(defun apply-edit (version)
  (jsonrpc-request
   server :workspace/executeCommand
   (list :command "applyEdit.apply"
         :arguments
         (vector (list :textDocument
                       (list :uri (plist-get (eglot--TextDocumentIdentifier) :uri)
                             :version version)
                       :snippet (getenv "SNIPPET"))))
   :timeout 30))

(defun run ()
  (find-file (getenv "FILE"))
  (text-mode)
  (buffer-enable-undo)
  (setq server (eglot--connect '(text-mode) (cons 'transient default-directory)
                               'eglot-lsp-server
                               (append (json-parse-string (getenv "SERVER")) nil)
                               "plaintext"))
  (let ((end (+ (float-time) 30)))
    (while (and (not (eglot-managed-p)) (< (float-time) end))
      (accept-process-output nil 0.02)))
  (see 'before (text))
  (goto-char (point-max))
  (forward-line -1)
  (undo-boundary)
  (let ((result (apply-edit eglot--versioned-identifier)))
    (see 'status (plist-get result :status)))
  (see 'after (text))
  (see 'cursor (buffer-substring-no-properties (point) (line-end-position)))
  (see 'modified (if (buffer-modified-p) t :json-false))
  (undo-boundary)
  (setq last-command nil)
  (undo)
  (see 'undone (text))
  (see 'stale
       (condition-case failure
           (progn (apply-edit 9999) "applied")
         (jsonrpc-error
          (plist-get (alist-get 'jsonrpc-error-data (cdr (cdr failure))) :code))))
  (eglot--signal-textDocument/didChange)
  (apply-edit eglot--versioned-identifier)
  (see 'again (text))
  (eglot-shutdown server nil 10)
  (set-buffer-modified-p nil))

(condition-case failure
    (run)
  (error (see 'error (format "%S" failure))))
(let ((coding-system-for-write 'utf-8))
  (with-temp-file (getenv "OUT") (insert (json-encode seen))))
(kill-emacs 0)
