//! Files whose contents are kept in memory if the device forgets them, and
//! files that go.

use std::rc::Rc;

use super::super::error::DbError;
use super::super::table::table_name;
use super::Inner;
use crate::Content;
use crate::files::{FilesError, Writer};

/// Appends bytes to a file, as bytes or as their number.
pub(super) async fn append(
    inner: &Inner,
    name: &str,
    writer: &mut Writer,
    bytes: Vec<u8>,
) -> Result<(), DbError> {
    inner.stats.borrow_mut().manifest_bytes += bytes.len() as u64;
    let content = if inner.options.keeps_data {
        Content::Bytes(bytes)
    } else {
        inner.shadow.extend_text(name, &bytes);
        Content::Sized(bytes.len() as u64)
    };
    Ok(writer.append(content).await?)
}

/// All of a file that was written by [`append`].
pub(super) async fn read(inner: &Inner, name: &str) -> Result<Vec<u8>, DbError> {
    let reader = inner.files.open(name)?;
    match reader.read(0, reader.len()).await? {
        Content::Bytes(bytes) => Ok(bytes),
        Content::Sized(len) => {
            let text = inner.shadow.text(name, len);
            let file = name.to_owned();
            text.ok_or(DbError::Forgotten { file })
        }
    }
}

/// Deletes a file.
pub(super) async fn delete(inner: &Inner, name: &str) -> Result<(), FilesError> {
    inner.files.delete(name).await?;
    inner.shadow.forget_text(name);
    Ok(())
}

/// As [`delete`]; a failure is noted, and the file stays.
pub(super) async fn delete_or_note(inner: &Inner, name: &str) {
    if let Err(error) = delete(inner, name).await {
        inner.stats.borrow_mut().background_errors += 1;
        let mut failure = inner.compaction_failure.borrow_mut();
        failure.get_or_insert(error.into());
    }
}

/// Deletes tables that nobody needs any more. One that cannot be deleted goes
/// when the store is opened the next time.
pub(super) async fn purge(inner: &Inner) {
    loop {
        let Some(number) = inner.graveyard.borrow_mut().pop() else {
            return;
        };
        delete_or_note(inner, &table_name(number)).await;
        inner.shadow.forget_table(number);
    }
}

/// As [`purge`], beside the caller.
#[inline]
pub(super) fn purge_soon(inner: &Rc<Inner>) {
    if !inner.graveyard.borrow().is_empty() {
        let task = Rc::clone(inner);
        inner.io.spawn(async move { purge(&task).await }).forget();
    }
}
